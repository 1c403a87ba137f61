/** The one way to the server: same-origin JSON with the session cookie. Knows the error shape; refuses to know any page. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
    readonly fields: Record<string, string>,
  ) {
    super(message);
  }
}

interface ErrorBody {
  detail?: string | { loc: (string | number)[]; msg: string }[];
  code?: string;
  hint?: string;
}

function toError(status: number, body: ErrorBody): ApiError {
  const { detail, code = "error", hint = "" } = body;
  if (!Array.isArray(detail)) return new ApiError(status, code, detail ?? `The server answered ${status}.`, hint ?? "", {});
  const fields = Object.fromEntries(detail.map(({ loc, msg }) => [String(loc.at(-1)), msg]));
  return new ApiError(status, code, detail.map(({ loc, msg }) => `${loc.slice(1).join(".")}: ${msg}`).join("; "), hint ?? "", fields);
}

let csrfToken = "";

/** The session answers with the token that every changing request must carry. */
export function rememberCsrfToken(token: string): void {
  csrfToken = token;
}

export async function call<T>(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken;
  const response = await fetch(`/api/v1${path}`, {
    method,
    headers,
    credentials: "same-origin",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw toError(response.status, parseOrEmpty(text));
  return (text ? JSON.parse(text) : undefined) as T;
}

function parseOrEmpty(text: string): ErrorBody {
  try {
    return JSON.parse(text) as ErrorBody;
  } catch {
    return {}; // A proxy's page: the status says all there is.
  }
}

export const get = <T>(path: string) => call<T>("GET", path);
export const post = <T>(path: string, body: unknown = {}) => call<T>("POST", path, body);
export const put = <T>(path: string, body: unknown = {}) => call<T>("PUT", path, body);
export const remove = <T>(path: string) => call<T>("DELETE", path);
