// Asks the service. Types of requests and answers come from its OpenAPI document; a refusal is thrown as a Refusal.
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths as published } from "../generated/api";
import { problemOf, Refusal, unreachable } from "./problem";

/** The published paths, but the header X-CSRF-Token, which is required there, is set here for every request (see ask). */
type WithToken<Operation> = Operation extends { parameters: { header: infer Header } }
  ? Omit<Operation, "parameters"> & { parameters: Omit<Operation["parameters"], "header"> & { header?: Omit<Header, "X-CSRF-Token"> } }
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

/** Unsafe methods carry a token that is bound to the session. It is fetched when it is first needed, and again when the service refuses it. */
let token: Promise<string> | null = null;

/** Whose page this is. Should another account sign in beside it, nothing that was written here is sent as theirs. */
let owner: string | null = null;

/** What a signed-in account says of itself; also renews the token. */
export async function askSession(): Promise<SessionInfo> {
  const answer = await reach(new Request("/auth/session", { cache: "no-store" }));
  if (!answer.ok) throw await problemOf(answer);
  const session = (await answer.json()) as SessionInfo;
  if (owner !== null && owner !== session.account.account_id) {
    location.assign("/");
    throw new Refusal(401, "other_account", "", null, 0);
  }
  owner = session.account.account_id;
  token = Promise.resolve(session.csrf_token);
  return session;
}

/** How often this page was given another session. */
let sessions = 0;

/** Forgets the token: it was of another session than the one that there is from now on. */
export function forgetToken(): void {
  token = null;
  sessions++;
}

/** Sends one request as the signed-in account; again, once, when it was refused for a session that was renewed meanwhile. */
export async function send(request: Request): Promise<Response> {
  const again = request.clone();
  const before = sessions;
  const renewed = (status: number) => status === 401 && sessions !== before;
  try {
    const answer = await ask(request);
    if (!renewed(answer.status)) return answer;
  } catch (refusal) {
    if (!(refusal instanceof Refusal && renewed(refusal.status))) throw refusal;
  }
  return ask(again);
}

/** Sends one request with the token; one that has grown old is renewed once, silently. */
async function ask(request: Request): Promise<Response> {
  if (["GET", "HEAD"].includes(request.method)) return reach(request);
  const again = request.clone();
  const answer = await reach(await signed(request));
  if (answer.status !== 403 || (await problemOf(answer.clone())).code !== "csrf") return answer;
  token = null;
  return reach(await signed(again));
}

async function signed(request: Request): Promise<Request> {
  const open = new URL(request.url).pathname.match(/^\/auth\/(login|register)$/);
  if (open) return request;
  token ??= askSession().then((session) => session.csrf_token);
  try {
    request.headers.set("X-CSRF-Token", await token);
  } catch (refusal) {
    token = null;
    throw refusal;
  }
  return request;
}

async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch {
    throw unreachable();
  }
}

const throwRefusals: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await problemOf(response);
    return undefined;
  },
};

/** The API by its paths: `api.GET("/conversations", …)`. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });
api.use(throwRefusals);

/** The body of an answer that came, which openapi-fetch has as possibly absent. */
export async function body<T>(answer: Promise<{ data?: T }>): Promise<T> {
  const { data } = await answer;
  return data as T;
}

export { Refusal };
