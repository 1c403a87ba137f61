/** Names for the shapes of the API that pages pass around. All of them come from the OpenAPI document. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Session = Schemas["SessionOut"];
export type SignedIn = Session & { user: NonNullable<Session["user"]> };
export type Team = Schemas["TeamOut"];
export type Run = Schemas["RunAnswer"];
export type RunUsage = Schemas["RunUsage"];
export type EnvironmentRow = Schemas["EnvironmentRow"];
export type DatasetRow = Schemas["DatasetRow"];
export type Dataset = Schemas["DatasetDetail"];
export type DatasetReport = Schemas["ImportReport"];
export type ReleaseDetail = Schemas["ReleaseDetail"];
export type Compatibility = Schemas["Compatibility"];
export type LeaderboardRow = Schemas["LeaderboardRow"];
export type Collaborator = Schemas["CollaboratorRow"];
export type VersionRow = Schemas["VersionRow"];
export type BaseModel = Schemas["ModelAnswer"];
export type Adapter = Schemas["AdapterRow"];
export type Evaluation = Schemas["EvaluationAnswer"];
export type EvaluationDetail = Schemas["EvaluationDetail"];
export type Comparison = Schemas["ComparisonAnswer"];
export type ComparedEvaluation = Schemas["ComparedEvaluation"];
export type ComparedExample = Schemas["ComparedExample"];
export type TeamSecret = Schemas["SecretOut"];
export type EnvironmentSecret = Schemas["EnvironmentSecret"];
export type Variable = Schemas["Variable"];
export type ApiKey = Schemas["KeyOut"];
export type NewApiKey = Schemas["KeyMade"];
export type Member = Schemas["MemberRow"];
export type MeterRow = Schemas["MeterRow"];
export type LedgerEntry = Schemas["EntryRow"];
export type RolloutGroup = Schemas["GroupAnswer"];
export type RolloutDetail = Schemas["RolloutAnswer"];
export type Trace = Schemas["TraceAnswer"];
export type Tokens = Schemas["TokensAnswer"];
