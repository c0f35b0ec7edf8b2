// The client of the HTTP API. Types of requests and responses come from the OpenAPI document; an error response is
// thrown as a Refusal.
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths as published } from "../generated/api";
import { noteSignIns, readRefusal, Refusal, unreachable } from "./problem";

/** The published paths without the required header X-CSRF-Token, which withToken adds to requests. */
type WithToken<Operation> = Operation extends { parameters: { header: infer Header } }
  ? Omit<Operation, "parameters"> & {
      parameters: Omit<Operation["parameters"], "header"> & { header?: Omit<Header, "X-CSRF-Token"> };
    }
  : Operation;
type paths = { [Path in keyof published]: { [Method in keyof published[Path]]: WithToken<published[Path][Method]> } };

export type Schemas = components["schemas"];
export type Conversation = Schemas["Conversation"];
export type ConversationPage = Schemas["ConversationPage"];
export type Message = Schemas["Message"];
export type Settings = Schemas["Settings"];
export type SessionInfo = Schemas["SessionInfo"];
export type FollowUp = Schemas["FollowUp"];
export type Draft = Schemas["Draft"];
export type Device = Schemas["Device"];

/** The session's CSRF token, sent with unsafe methods. Fetched on first use, and again when the service refuses it. */
let token: Promise<string> | null = null;

/** The account of this page. If another account signs in elsewhere in this browser, this page sends nothing for it. */
let owner: string | null = null;

/** Fetches the session of the signed-in account and renews the token. */
export async function fetchSession(): Promise<SessionInfo> {
  const response = await fetchOrRefuse(new Request("/auth/session", { cache: "no-store" }));
  if (!response.ok) throw await readRefusal(response);
  const session = (await response.json()) as SessionInfo;
  if (owner !== null && owner !== session.account.account_id) {
    location.assign("/");
    throw new Refusal(401, "other_account", "", null, 0);
  }
  owner = session.account.account_id;
  token = Promise.resolve(session.csrf_token);
  return session;
}

/** Counts the sessions that replaced an earlier one in this page. */
let sessionCount = 0;

/**
 * Whether the request of a refusal was sent before the last sign-in of this page. Then its 401 says nothing about the
 * current session.
 */
export const isOutdated = ({ signIns }: Refusal): boolean => signIns !== undefined && signIns !== sessionCount;

/** The number of sign-ins so far, for requests that are sent without this module. */
export const countSignIns = (): number => sessionCount;

/** Discards the token because a new session has replaced the one that the token belongs to. */
export function forgetToken(): void {
  token = null;
  sessionCount++;
}

/** Sends a request as the signed-in account. Repeats it once after a 401 if the session was renewed in the meantime. */
export async function send(request: Request): Promise<Response> {
  const again = request.clone();
  const before = sessionCount;
  const renewed = (status: number) => status === 401 && sessionCount !== before;
  try {
    const response = await sendWithToken(request);
    if (!renewed(response.status)) return response;
  } catch (refusal) {
    if (!(refusal instanceof Refusal && renewed(refusal.status))) throw refusal;
  }
  return sendWithToken(again);
}

/** What requests that read wait for. */
let readStart: Promise<void> = Promise.resolve();

/** Holds requests that read until the promise settles, except for that of the session. It is never rejected. */
export const holdReads = (until: Promise<void>): void => void (readStart = until);

/** Sends a request with the token. If the token is refused, renews it and repeats the request once. */
async function sendWithToken(request: Request): Promise<Response> {
  if (["GET", "HEAD"].includes(request.method)) {
    await readStart;
    return fetchOrRefuse(request);
  }
  const again = request.clone();
  const response = await fetchOrRefuse(await withToken(request));
  if (response.status !== 403 || (await readRefusal(response.clone())).code !== "csrf") return response;
  token = null;
  return fetchOrRefuse(await withToken(again));
}

async function withToken(request: Request): Promise<Request> {
  const isPublic = new URL(request.url).pathname.match(
    /^\/auth\/(login|register|passkeys\/sign-in\/\w+|password\/(forgot|reset)|email\/verify)$/,
  );
  if (isPublic) return request;
  token ??= fetchSession().then((session) => session.csrf_token);
  try {
    request.headers.set("X-CSRF-Token", await token);
  } catch (refusal) {
    token = null;
    throw refusal;
  }
  return request;
}

async function fetchOrRefuse(request: Request): Promise<Response> {
  const before = sessionCount;
  try {
    return noteSignIns(await fetch(request), before);
  } catch {
    throw unreachable();
  }
}

const throwRefusals: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await readRefusal(response);
    return undefined;
  },
};

/** The typed API client, for example `api.GET("/conversations", …)`. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });
api.use(throwRefusals);

/** Returns the body of a successful response, which openapi-fetch types as optional. */
export async function body<T>(response: Promise<{ data?: T }>): Promise<T> {
  const { data } = await response;
  return data as T;
}

export { Refusal };
