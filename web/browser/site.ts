// A person in front of the app: a Chromium, accounts of their own, and what must never happen while they look.
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";

export const url = process.env["TURNSTONE_URL"] ?? "http://127.0.0.1:8080";
const control = process.env["TURNSTONE_CONTROL"];
const internal = process.env["TURNSTONE_INTERNAL"] ?? "";
const flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

export const desktop = { width: 1280, height: 800 };
export const phone = { width: 390, height: 844 };

let browser: Browser;

export async function launch(): Promise<void> {
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium-headless-shell", args: flags.split(" ") });
}

export async function quit(): Promise<void> {
  await browser.close();
}

/** Starts the browser for the tests of a file. Each test finds the service running and leaves it running. */
export function withBrowser(): void {
  beforeAll(launch);
  beforeEach(async () => {
    await errand("running");
    faulty = false;
  });
  afterEach(async () => {
    await errand("running");
    if (refused.length > 0) await errand("refused", refused.splice(0).join("\n"));
  });
  afterAll(quit);
}

/** Asks something of who runs the service; without such a one, as in a measurement, nothing. */
async function errand(verb: string, body = ""): Promise<void> {
  if (control !== undefined) expect((await fetch(`${control}/${verb}`, { method: "POST", body })).ok, verb).toBe(true);
}

/** Something was done to the service in this test: from then on it may refuse. */
let faulty = false;
/** The requests of this test that the service refused with 503 though nothing was done to it. */
const refused: string[] = [];

function countRefusal(status: number, method: string, to: string): void {
  if (status === 503 && !faulty) refused.push(`${expect.getState().currentTestName ?? ""}: ${method} ${to}`);
}

async function fault(verb: string): Promise<void> {
  faulty = true;
  await errand(verb);
}

/** kill -9 of the service, and its next start. */
export const down = () => fault("down");
export const up = () => fault("up");

/** The service stands still with its connections open, and goes on. */
export const freeze = () => fault("freeze");
export const thaw = () => fault("thaw");

/** Holds the answers of the model that have a place of this name until the returned function is called. */
export async function hold(name: string): Promise<() => Promise<void>> {
  const place = `${internal}/holds/${encodeURIComponent(name)}`;
  expect((await fetch(place, { method: "PUT" })).status).toBe(204);
  return async () => expect((await fetch(place, { method: "DELETE" })).status).toBe(204);
}

/** An account, and the API as it sees it. */
export class Account {
  readonly password = `a calm tide ${crypto.randomUUID()}`;
  #cookie = "";
  #csrf = "";
  private constructor(readonly email: string) {}

  static async register(): Promise<Account> {
    const account = new Account(`${crypto.randomUUID()}@turnstone.localhost`);
    const answer = await account.ask("POST", "/auth/register", { email: account.email, password: account.password, display_name: "Robin" });
    account.#csrf = ((await answer.json()) as { csrf_token: string }).csrf_token;
    return account;
  }

  /**
   * Sends a request as this account; throws what is not a success. An unplanned 503 without effect is counted, which fails the
   * suite or is reported as inconclusive; the request is then sent again, so that the rest of the test can still find something.
   */
  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const init = {
      method,
      headers: { "Content-Type": "application/json", Cookie: this.#cookie, "X-CSRF-Token": this.#csrf, Origin: url, ...(method === "POST" ? { "Idempotency-Key": crypto.randomUUID() } : {}), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const giveUp = Date.now() + 10_000;
    let answer = await fetch(url + path, init);
    countRefusal(answer.status, method, path);
    while (answer.status === 503 && !faulty && Date.now() < giveUp && !(await answer.clone().text()).includes("outcome_unknown")) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      answer = await fetch(url + path, init);
      countRefusal(answer.status, method, path);
    }
    for (const cookie of answer.headers.getSetCookie()) {
      const pair = cookie.split(";")[0]!; // beside the session, the service sets a cookie that marks a known device
      if (/^(__Host-)?session=/.test(pair)) this.#cookie = pair;
    }
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  async read<T>(path: string): Promise<T> {
    return (await (await this.ask("GET", path)).json()) as T;
  }

  /** A whole turn: the conversation it was in. */
  async chat(text: string, more: object = {}): Promise<string> {
    const answer = await this.ask("POST", "/chat", { input: [{ type: "text", text }], ...more });
    const events = await answer.text();
    return /"conversation_id":"(conv_[a-z0-9]+)"/.exec(events)![1]!;
  }

  /** Starts a turn and does not wait for its end. */
  async begin(text: string, more: object = {}): Promise<{ turn: string; conversation: string }> {
    const answer = await this.ask("POST", "/chat", { input: [{ type: "text", text }], ...more });
    const turn = answer.headers.get("X-Turn-Id")!;
    await answer.body?.cancel();
    return { turn, conversation: (await this.read<{ conversation_id: string }>(`/chat/turns/${turn}`)).conversation_id };
  }

  get cookie(): { name: string; value: string; url: string } {
    const [name, value] = this.#cookie.split("=");
    return { name: name!, value: value!, url };
  }
}

/** A browser window of its own, signed in where an account is given. */
export class Visit {
  readonly refused: string[] = [];
  readonly outside: string[] = [];
  readonly broken: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async open(path: string, account?: Account, options: BrowserContextOptions = {}): Promise<Visit> {
    const context = await browser.newContext({ viewport: desktop, locale: "en", timezoneId: "UTC", ...options });
    if (account !== undefined) await context.addCookies([account.cookie]);
    const visit = new Visit(context, await context.newPage());
    visit.watch(visit.page);
    await visit.page.goto(url + path);
    return visit;
  }

  /** Another tab of the same window. */
  async tab(path: string): Promise<Page> {
    const page = await this.context.newPage();
    this.watch(page);
    await page.goto(url + path);
    return page;
  }

  private watch(page: Page): void {
    page.on("console", (line) => {
      if (/Content Security Policy|Trusted Type/i.test(line.text())) this.refused.push(line.text());
    });
    // What a test answers in the place of the service has no such header.
    page.on("response", (answer) => {
      if ("x-request-id" in answer.headers()) countRefusal(answer.status(), answer.request().method(), answer.url());
    });
    page.on("pageerror", (error) => this.broken.push(String(error)));
    page.on("request", (request) => {
      const to = request.url();
      if (!to.startsWith(url) && !to.startsWith("data:") && !to.startsWith("blob:")) this.outside.push(to);
    });
  }

  /** Ends the visit: nothing was refused by the page's policy, nothing broke, nothing was asked of anybody else. */
  async close(): Promise<void> {
    await this.context.close();
    expect(this.refused, "reports of the content security policy").toEqual([]);
    expect(this.broken, "errors of the page").toEqual([]);
    expect(this.outside, "requests to others").toEqual([]);
  }
}
