/** States in a word and a colour; the word alone is enough. */
import type { ReactNode } from "react";

export type Tone = "" | "good" | "bad" | "wait" | "graft";
type Look = [tone: Tone, isLive: boolean, text?: string];

const RUN: Record<string, Look> = {
  QUEUED: ["wait", false], PENDING: ["wait", true, "starting"], RUNNING: ["good", true], PAUSING: ["wait", true], PAUSED: ["wait", false],
  COMPLETED: ["good", false], FAILED: ["bad", false], STOPPED: ["", false],
};
const RELEASE: Record<string, Look> = {
  PENDING: ["wait", false, "waiting for its check"], BUILDING: ["wait", true, "being checked"], GREEN: ["good", false, "check passed"], RED: ["bad", false, "check failed"],
};
const DEPLOYMENT: Record<string, Look> = {
  NOT_DEPLOYED: ["", false, "not deployed"], DEPLOYING: ["wait", true], DEPLOYED: ["graft", false], UNLOADING: ["wait", true],
  DEPLOY_FAILED: ["bad", false, "deploy failed"], UNLOAD_FAILED: ["bad", false, "unload failed"],
};
const EVALUATION: Record<string, Look> = {
  PENDING: ["wait", false, "waiting"], RUNNING: ["good", true], COMPLETED: ["good", false], FAILED: ["bad", false], CANCELLED: ["", false], TIMEOUT: ["bad", false, "out of time"],
};

export function Badge({ tone = "", isLive = false, isPlain = false, children }: { tone?: Tone; isLive?: boolean; isPlain?: boolean; children: ReactNode }) {
  const classes = ["badge", tone, isLive ? "live" : "", isPlain ? "plain" : ""];
  return <span className={classes.filter(Boolean).join(" ")}>{children}</span>;
}

function StateBadge({ looks, state }: { looks: Record<string, Look>; state: string }) {
  const [tone, isLive, text = state.toLowerCase().replaceAll("_", " ")] = looks[state] ?? ["", false];
  return <Badge tone={tone} isLive={isLive}>{text}</Badge>;
}

export const RunBadge = ({ status }: { status: string }) => <StateBadge looks={RUN} state={status} />;
export const DeploymentBadge = ({ status }: { status: string }) => <StateBadge looks={DEPLOYMENT} state={status} />;
export const EvaluationBadge = ({ status }: { status: string }) => <StateBadge looks={EVALUATION} state={status} />;

export function ReleaseBadge({ state }: { state: string | null | undefined }) {
  return state ? <StateBadge looks={RELEASE} state={state} /> : <Badge>no release</Badge>;
}
