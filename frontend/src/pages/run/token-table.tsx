/** The same tokens as a table: for screen readers, for copying, for those who want the numbers. */
import type { Tokens, Trace } from "../../api/shapes";

export function TokenTable({ tokens, calls }: { tokens: Tokens; calls: Trace["calls"] }) {
  return (
    <div className="chart-table token-table" role="region" aria-label="Tokens as a table" tabIndex={0}>
      <table>
        <thead><tr>{["#", "id", "text", "came from", "trained on", "log-probability", "version"].map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>
          {tokens.token_ids.map((id, index) => (
            <tr key={index}>
              <th scope="row">{tokens.offset + index + 1}</th>
              <td>{id}</td>
              <td><code>{JSON.stringify(tokens.texts?.[index] ?? "")}</code></td>
              <td>{tokens.sampled[index] ? "sampled" : "read"}</td>
              <td>{tokens.trained[index] ? "yes" : "no"}</td>
              <td>{tokens.logprobs[index]?.toFixed(4).replace("-", "−") ?? "—"}</td>
              <td>{tokens.sampled[index] ? (calls[tokens.calls[index] ?? 0]?.policy_version ?? "base") : "—"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
