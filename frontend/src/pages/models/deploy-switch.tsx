/** Deploy and take down one adapter version; a chat once it is served. */
import { Link } from "react-router";
import { api } from "../../api/client";
import type { Adapter } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { ConfirmButton } from "../../design/dialog";
import { useToast } from "../../design/toast";

/** What callers put into `model`. */
export const modelId = (adapter: Adapter) => `${adapter.baseModel}:${adapter.id}`;
export const isServed = (adapter: Adapter) => adapter.deploymentStatus === "DEPLOYED";

const DOWN = new Set(["NOT_DEPLOYED", "DEPLOY_FAILED"]);
const UP = new Set(["DEPLOYED", "UNLOAD_FAILED", "DEPLOYING"]);

export function DeploySwitch({ adapter, onDone }: { adapter: Adapter; onDone: () => void }) {
  const say = useToast();
  const path = { adapter_id: adapter.id };
  const done = (text: string) => () => {
    say(text);
    onDone();
  };
  const deploy = useAction(() => api.post("/api/v1/rft/adapters/{adapter_id}/deploy", { path }), done("The adapter is being loaded."));
  const unload = useAction(() => api.post("/api/v1/rft/adapters/{adapter_id}/unload", { path }), done("The adapter is being taken down."));
  return (
    <span className="row end">
      {isServed(adapter) && <Link className="button slim" to={`/chat?model=${encodeURIComponent(modelId(adapter))}`}>Chat</Link>}
      {DOWN.has(adapter.deploymentStatus) && (
        <ConfirmButton label="Deploy" title={`Deploy ${adapter.displayName}?`} action={deploy} isSlim>
          <p>The engines of {adapter.baseModel} load version {adapter.version}. Callers reach it as <code>{modelId(adapter)}</code> and pay by the token. You can take it down at any time.</p>
        </ConfirmButton>
      )}
      {UP.has(adapter.deploymentStatus) && (
        <ConfirmButton label="Take down" title={`Take ${adapter.displayName} down?`} action={unload} isDanger isSlim>
          <p>Requests to <code>{modelId(adapter)}</code> are refused from now on. The adapter is kept: you can deploy it again.</p>
        </ConfirmButton>
      )}
    </span>
  );
}
