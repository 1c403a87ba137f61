/** One streamed chat completion: deltas as they come, then who answered and what it counted. Knows server-sent events. */
import { exchange } from "../../api/client";
import { ApiProblem, problemOf } from "../../api/problem";

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface Outcome {
  /** Which weights answered: the engine's name of an adapter version, or the base model's; and their digest. */
  name: string;
  digest: string;
  inputTokens?: number;
  outputTokens?: number;
  finish?: string;
}

interface Chunk {
  choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  adapter?: { name: string; digest: string };
  error?: unknown;
}

const ADDRESS = "/api/inference/v1/chat/completions";
const DEADLINE_MS = 300_000;

/** The `data:` lines of the answer, in order, until `[DONE]`. */
async function* dataLines(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (waiting + value).split("\n");
    waiting = lines.pop() ?? "";
    for (const line of lines) {
      const data = line.startsWith("data:") ? line.slice(5).trim() : "";
      if (data === "[DONE]") return;
      if (data) yield data;
    }
  }
}

function absorb(outcome: Outcome, chunk: Chunk): void {
  if (chunk.adapter) Object.assign(outcome, chunk.adapter);
  if (chunk.usage) {
    outcome.inputTokens = chunk.usage.prompt_tokens;
    outcome.outputTokens = chunk.usage.completion_tokens;
  }
  const finish = chunk.choices?.[0]?.finish_reason;
  if (finish) outcome.finish = finish;
}

/** Raises ApiProblem; an abort by `signal` stays an AbortError. */
export async function streamChat(body: { model: string; messages: Message[]; temperature: number; max_tokens: number }, onText: (text: string) => void, signal: AbortSignal): Promise<Outcome> {
  const asked = { ...body, stream: true, stream_options: { include_usage: true } };
  const response = await exchange("post", ADDRESS, asked, AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]));
  const outcome: Outcome = { name: "", digest: response.headers.get("X-Adapter-Digest") ?? "" };
  for await (const data of dataLines(response)) {
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw problemOf(200, data, response.headers.get("X-Request-ID") ?? "");
    absorb(outcome, chunk);
    const text = chunk.choices?.[0]?.delta?.content;
    if (text) onText(text);
  }
  if (!outcome.finish) throw new ApiProblem(0, "cut_off", "The answer was cut off.", "Ask again.");
  return outcome;
}
