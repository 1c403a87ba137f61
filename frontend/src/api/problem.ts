/** What a failed request becomes. Knows the API's two error shapes; refuses to know any page. */

interface FieldProblem {
  loc: (string | number)[];
  msg: string;
}

interface ErrorBody {
  detail?: string | FieldProblem[];
  code?: string;
  hint?: string | null;
  request_id?: string;
  /** OpenAI's shape, under /api/inference. */
  error?: { message?: string; code?: string | null; type?: string };
}

export class ApiProblem extends Error {
  constructor(
    /** HTTP status; 0 where no answer came. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint = "",
    readonly requestId = "",
    /** Complaint by field: `name`, `env.0.id`, and the last part alone. */
    readonly fields: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = "ApiProblem";
  }
}

/** The first part of `loc` names the place (body, query, path); the person filling a form knows it already. */
function fieldName(loc: FieldProblem["loc"]): string {
  return loc.slice(1).join(".") || String(loc[0] ?? "");
}

function byField(problems: FieldProblem[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const { loc, msg } of problems) {
    fields[fieldName(loc)] ??= msg;
    fields[String(loc.at(-1))] ??= msg;
  }
  return fields;
}

function parsed(text: string): ErrorBody {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? body : {};
  } catch {
    return {}; // A proxy's page: the status says all there is.
  }
}

export function problemOf(status: number, text: string, requestIdHeader = ""): ApiProblem {
  const body = parsed(text);
  const requestId = body.request_id ?? requestIdHeader;
  if (body.error) return new ApiProblem(status, body.error.code ?? body.error.type ?? "error", body.error.message ?? `The server answered ${status}.`, "", requestId);
  const { detail, code = "error" } = body;
  const hint = body.hint ?? "";
  if (!Array.isArray(detail)) return new ApiProblem(status, code, detail ?? `The server answered ${status}.`, hint, requestId);
  const message = detail.map(({ loc, msg }) => `${fieldName(loc)}: ${msg}`).join("; ");
  return new ApiProblem(status, code, message, hint, requestId, byField(detail));
}

export const OFFLINE = () => new ApiProblem(0, "offline", "The server cannot be reached.", "Check the connection; the page asks again by itself.");
export const LATE = () => new ApiProblem(0, "deadline", "The server did not answer in time.", "Try again.");
