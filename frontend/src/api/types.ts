/** The shapes of the public API that the dashboard reads (docs/openapi.json has all of them). */

export interface Session {
  user: { id: string; email: string; name: string; slug: string } | null;
  teams: { id: string; slug: string; name: string; is_personal: boolean }[];
  csrf_token: string;
}

export type SignedIn = Session & { user: NonNullable<Session["user"]> };

export interface Page<T> {
  data: T[];
  total_count: number;
}

export interface EnvironmentRow {
  id: string;
  name: string;
  owner: { name: string };
  description: string;
  visibility: "PUBLIC" | "PRIVATE";
  latest_version: string | null;
  badge?: BadgeState | null;
  tags: string[];
  updated_at: string;
}

export type BadgeState = "PENDING" | "BUILDING" | "GREEN" | "RED";

export interface EnvironmentDetail {
  id: string;
  name: string;
  owner: { name: string };
  visibility: string;
  semantic_version: string;
  content_hash: string;
  metadata: { description: string; dependencies: string[] };
  badge: BadgeState;
}

export interface BadgeDetail {
  badge: BadgeState;
  verdict: { ok: boolean; summary: string; module: string | null; line: number | null } | null;
}

export interface VersionRow {
  version: string;
  created_at: string;
  sha256: string;
  badge?: BadgeState;
  yanked?: boolean;
}

export type RunStatus = "QUEUED" | "PENDING" | "RUNNING" | "PAUSING" | "PAUSED" | "COMPLETED" | "FAILED" | "STOPPED";

export interface Run {
  id: string;
  name: string | null;
  status: RunStatus;
  baseModel: string;
  environments: { id: string }[];
  maxSteps: number;
  batchSize: number;
  rolloutsPerExample: number;
  effectiveConfig: Record<string, unknown>;
  queueReason: string | null;
  runsAhead: number | null;
  errorMessage: string | null;
  notice: string | null;
  createdAt: string;
  startedAt: string | null;
  completedAt: string | null;
  failureAnalysis: { rootCause: string; evidence: string[] } | null;
}

export interface RunEvent {
  seq: number;
  kind: "state" | "log" | "step" | "eval" | "checkpoint" | "version" | "incident" | "warning";
  step: number | null;
  at: string;
  payload: Record<string, unknown>;
}

export interface Sample {
  rollout_id: string;
  group_id: string;
  environment: string;
  task_key: string;
  state: string;
  reward: number | null;
  advantage: number | null;
  policy_version_min: number;
  staleness: number;
  input_tokens: number;
  output_tokens: number;
  error: string | null;
  preview: string;
  messages?: { role: string; content: unknown }[];
}

export interface RunUsage {
  total_tokens: number;
  total_cost_usd: number;
  training: { tokens: number; cost_usd: number };
  inference: { tokens: number; cost_usd: number };
  meters?: { meter: string; quantity: number; amount_microusd: number }[];
}

export interface Wallet {
  balance_usd: number;
  total_billings: number;
  recent_billings: { id: string; amount_usd: number; resource_type: string; resource_id: string; last_billed_at: string }[];
}

export interface ApiKey {
  id: string;
  name: string;
  prefix: string;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

export interface NewApiKey extends ApiKey {
  key: string;
}
