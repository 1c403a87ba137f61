/**
 * The one way to the server: same-origin JSON with the session cookie, typed by the OpenAPI document (`npm run api`).
 * Knows paths, the CSRF token, the chosen team and the deadline; refuses to know any page.
 */
import { ApiProblem, LATE, OFFLINE, problemOf } from "./problem";
import type { paths } from "./schema";

export type Method = "get" | "post" | "put" | "patch" | "delete";
/** The paths that have this method. */
export type PathsWith<M extends Method> = { [P in keyof paths]: paths[P][M] extends undefined ? never : P }[keyof paths];
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;

interface Options {
  signal?: AbortSignal;
  /** Idempotency key: however often the same change is sent under it, it happens once. */
  once?: string;
}

type PathPart<O> = O extends { parameters: { path: infer V } } ? { path: V } : { path?: undefined };
type QueryPart<O> = O extends { parameters: { query?: infer V } } ? { query?: V } : { query?: undefined };
type BodyPart<O> = O extends { requestBody: { content: { "application/json": infer V } } }
  ? { body: V }
  : O extends { requestBody?: { content: { "application/json": infer V } } }
    ? { body?: V }
    : { body?: undefined };
export type RequestOf<P extends keyof paths, M extends Method> = PathPart<Operation<P, M>> & QueryPart<Operation<P, M>> & BodyPart<Operation<P, M>> & Options;

type Json<A> = A extends { content: { "application/json": infer T } } ? T : undefined;
type Success<R> = R extends { 200: infer A } ? Json<A> : R extends { 201: infer A } ? Json<A> : undefined;
export type AnswerOf<P extends keyof paths, M extends Method> = Operation<P, M> extends { responses: infer R } ? Success<R> : never;

type Arguments<P extends keyof paths, M extends Method> = Record<never, never> extends RequestOf<P, M> ? [request?: RequestOf<P, M>] : [request: RequestOf<P, M>];
interface LooseRequest extends Options {
  path?: object;
  query?: object;
  body?: unknown;
}

const DEADLINE_MS = 30_000;
const SESSION = "/api/v1/auth/session";
const caller = { csrfToken: "", teamId: "", onSignedOut: () => {} };

/** The session's token goes into every changing request; the team into every request. Without a team: the personal one. */
export function actAs({ csrfToken, teamId, onSignedOut }: Partial<typeof caller>): void {
  if (csrfToken !== undefined) caller.csrfToken = csrfToken;
  if (teamId !== undefined) caller.teamId = teamId;
  if (onSignedOut !== undefined) caller.onSignedOut = onSignedOut;
}

export const currentTeamId = () => caller.teamId;

/** `/rft/runs/{run_id}` with its values, and the query without what is undefined. */
export function addressOf(path: string, { path: values = {}, query = {} }: LooseRequest = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((values as Record<string, unknown>)[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query as Record<string, unknown>)) {
    if (value === undefined || value === null || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return text ? `${filled}?${text}` : filled;
}

function headersFor(method: Method, hasBody: boolean, once: string | undefined): Record<string, string> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (hasBody) headers["Content-Type"] = "application/json";
  if (method !== "get") headers["X-CSRFToken"] = caller.csrfToken;
  if (once) headers["Idempotency-Key"] = once;
  if (caller.teamId) headers["X-Prime-Team-ID"] = caller.teamId;
  return headers;
}

/** The raw exchange, for streams. Raises ApiProblem unless the answer is a success; an abort by the caller stays an AbortError. */
export async function exchange(method: Method, address: string, body: unknown, signal: AbortSignal, once?: string): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, {
      method: method.toUpperCase(),
      headers: headersFor(method, body !== undefined, once),
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (reason) {
    if (reason instanceof DOMException && reason.name === "TimeoutError") throw LATE();
    if (reason instanceof TypeError) throw OFFLINE();
    throw reason;
  }
  if (response.ok) return response;
  const problem = problemOf(response.status, await response.text(), response.headers.get("X-Request-ID") ?? "");
  if (problem.status === 401) caller.onSignedOut();
  throw problem;
}

async function ask(method: Method, path: string, request: LooseRequest): Promise<unknown> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const signal = request.signal ? AbortSignal.any([request.signal, deadline]) : deadline;
  const response = await exchange(method, addressOf(path, request), request.body, signal, request.once);
  const text = await response.text();
  return text ? JSON.parse(text) : undefined;
}

/** Another tab signed in again: its session has another token. Ask for it once. */
async function renewToken(): Promise<void> {
  const session = (await ask("get", SESSION, {})) as { csrf_token: string };
  caller.csrfToken = session.csrf_token;
}

/** The untyped way, for what is typed elsewhere. */
export async function call(method: Method, path: string, request: LooseRequest = {}): Promise<unknown> {
  try {
    return await ask(method, path, request);
  } catch (reason) {
    if (!(reason instanceof ApiProblem) || reason.code !== "csrf_failed") throw reason;
    await renewToken();
    return ask(method, path, request);
  }
}

type Typed<M extends Method> = <P extends PathsWith<M>>(path: P, ...request: Arguments<P, M>) => Promise<AnswerOf<P, M>>;
// The compiler would compare every operation of the document with `LooseRequest` here, and there are too many; it checks each call.
const method = <M extends Method>(name: M) => ((path: string, request?: LooseRequest) => call(name, path, request)) as unknown as Typed<M>;

/** `await api.put("/api/v1/rft/runs/{run_id}/stop", { path: { run_id } })` */
export const api = {
  get: method("get"),
  post: method("post"),
  put: method("put"),
  patch: method("patch"),
  delete: method("delete"),
};
