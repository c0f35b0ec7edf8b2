// Chromium, test accounts and browser windows for the tests, with the checks that every window must pass.
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { hangGuard } from "./hang-guard";

export const url = process.env["TURNSTONE_URL"] ?? "http://127.0.0.1:8080";
/** The sandbox origin, on which artifacts run. */
const content = process.env["TURNSTONE_CONTENT"] ?? "http://127.0.0.1:8082";
const control = process.env["TURNSTONE_CONTROL"];
const internal = process.env["TURNSTONE_INTERNAL"] ?? "";
export const flags =
  "--headless --no-sandbox --disable-gpu --in-process-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
// A page lives for seconds. Without the optimizing compilers it needs a tenth less processor time.
const scriptFlags = "--js-flags=--no-opt --no-maglev";

export const desktop = { width: 1280, height: 800 };
export const phone = { width: 390, height: 844 };

let browser: Browser | undefined;

export async function launch(): Promise<Browser> {
  return (browser ??= await chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium-headless-shell",
    args: [...flags.split(" "), scriptFlags],
  }));
}

export async function quit(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

/**
 * Prepares the tests of a file. The service runs at the start and at the end of each test. All files that run in the same
 * process use its browser, which ends with the process.
 */
export function withBrowser(): void {
  beforeAll(launch);
  beforeEach(async () => {
    await sendCommand("running");
    faultInjected = false;
  });
  afterEach(async ({ task }) => {
    await sendCommand("running");
    if (refused.length > 0) await sendCommand("refused", refused.splice(0).join("\n"));
    const failed = task.result?.state === "fail";
    const shown = failed ? await Promise.all([...opened].map(({ page }) => describePage(page))) : [];
    for (const { context } of opened) await context.close(); // a test that failed has left them open
    opened.clear();
    if (failed) await endSharing();
    if (shown.length > 0) throw new Error(shown.join("\n")); // reported beside the failure
  });
  afterAll(endSharing);
}

/** Describes what a page shows when a test fails: its address, and what is accessible in it. */
async function describePage(page: Page): Promise<string> {
  const content = await page.locator("body").ariaSnapshot({ timeout: 5_000 }).catch(String);
  return `${page.url()} showed:\n${content.slice(0, 2_000)}`;
}

/** Sends a command to the process that runs the service. Does nothing without one, for example in a benchmark. */
async function sendCommand(verb: string, body = ""): Promise<void> {
  if (control !== undefined) expect((await fetch(`${control}/${verb}`, { method: "POST", body })).ok, verb).toBe(true);
}

/** Whether this test has caused a fault of the service; from then on 503s are expected. */
let faultInjected = false;
/** The requests of this test that the service refused with 503 without a fault. */
const refused: string[] = [];

function countRefusal(status: number, method: string, to: string): void {
  if (status === 503 && !faultInjected) refused.push(`${expect.getState().currentTestName ?? ""}: ${method} ${to}`);
}

async function injectFault(verb: string): Promise<void> {
  faultInjected = true;
  await sendCommand(verb);
}

/** Kills the service with kill -9, and starts it again. */
export const down = () => injectFault("down");
export const up = () => injectFault("up");

/** Stops the process of the service with its connections open, and continues it. */
export const freeze = () => injectFault("freeze");
export const thaw = () => injectFault("thaw");

/** Pauses the answers of the model at their hold position with this name until the returned function is called. */
export async function hold(name: string): Promise<() => Promise<void>> {
  const address = `${internal}/holds/${encodeURIComponent(name)}`;
  expect((await fetch(address, { method: "PUT" })).status).toBe(204);
  return async () => expect((await fetch(address, { method: "DELETE" })).status).toBe(204);
}

/** A test account with a session, and its requests to the API. */
export class Account {
  readonly password = `a calm tide ${crypto.randomUUID()}`;
  #cookie = "";
  #csrf = "";
  private constructor(readonly email: string) {}

  static async register(): Promise<Account> {
    const account = new Account(`${crypto.randomUUID()}@turnstone.localhost`);
    const response = await account.request("POST", "/auth/register", {
      email: account.email,
      password: account.password,
      display_name: "Robin",
    });
    account.#csrf = ((await response.json()) as { csrf_token: string }).csrf_token;
    return account;
  }

  /**
   * Sends a request as this account; throws an error if it does not succeed. A 503 that the test did not cause also fails
   * the suite.
   */
  async request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const key: Record<string, string> = method === "POST" ? { "Idempotency-Key": crypto.randomUUID() } : {};
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await this.send(path, { method, headers: { ...key, ...headers }, ...text });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  }

  /** Sends a request as this account, whose response may have any status. */
  async send(path: string, init: RequestInit): Promise<Response> {
    const session = { Cookie: this.#cookie, "X-CSRF-Token": this.#csrf, Origin: url };
    const response = await fetch(url + path, {
      ...init,
      headers: { "Content-Type": "application/json", ...session, ...(init.headers as Record<string, string>) },
    });
    countRefusal(response.status, init.method ?? "GET", path);
    for (const cookie of response.headers.getSetCookie()) {
      const pair = cookie.split(";")[0]!; // the service also sets a cookie that marks a known device
      if (/^(__Host-)?session=/.test(pair)) this.#cookie = pair;
    }
    return response;
  }

  /** Uploads a text as a file of the library. */
  async storeFile(filename: string, content = `The tides of ${filename}.\n`): Promise<void> {
    const media_type = "application/octet-stream";
    const session = { filename, media_type, size: content.length, purpose: "library" };
    const created = await this.request("POST", "/files/uploads", session);
    const { upload_id } = (await created.json()) as { upload_id: string };
    const path = `/files/uploads/${upload_id}/content`;
    const response = await this.send(path, { method: "PUT", headers: { "Content-Type": media_type }, body: content });
    if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`);
  }

  async read<T>(path: string): Promise<T> {
    return (await (await this.request("GET", path)).json()) as T;
  }

  /** Runs a whole turn and returns its conversation. */
  async chat(text: string, options: object = {}): Promise<string> {
    const response = await this.request("POST", "/chat", { input: [{ type: "text", text }], ...options });
    const events = await response.text();
    return /"conversation_id":"(conv_[a-z0-9]+)"/.exec(events)![1]!;
  }

  /** Starts a turn and does not wait for its end. */
  async startTurn(text: string, options: object = {}): Promise<{ turn: string; conversation: string }> {
    const response = await this.request("POST", "/chat", { input: [{ type: "text", text }], ...options });
    const turn = response.headers.get("X-Turn-Id")!;
    await response.body?.cancel();
    return {
      turn,
      conversation: (await this.read<{ conversation_id: string }>(`/chat/turns/${turn}`)).conversation_id,
    };
  }

  get cookie(): { name: string; value: string; url: string } {
    const [name, value] = this.#cookie.split("=");
    return { name: name!, value: value!, url };
  }
}

let shared: Promise<Account> | undefined;

/**
 * Returns the account that the tests of this file share. Its windows stay open from test to test, and are opened again by
 * a navigation inside of the app: that takes a tenth of the processor time that a page needs to load. What a test leaves
 * behind is still there, for example conversations and open dialogs. After a test that failed, it is another account.
 */
export const sharedAccount = (): Promise<Account> => (shared ??= Account.register());

/** Clears the windows of the shared account. */
async function endSharing(): Promise<void> {
  shared = undefined;
  for (const window of kept.splice(0)) await store(window);
}

/** A context of the browser with its first page. */
interface Window {
  readonly context: BrowserContext;
  readonly page: Page;
  /** The options of the context, as JSON. */
  readonly options: string;
  /** Whether a test used what cannot be undone: a clock, a script that runs before those of the page, or DevTools. */
  altered: boolean;
  /** Whose cookie and data it has. */
  account: Account | undefined;
}

/** The windows that the current test has open. */
const opened = new Set<Window>();

/**
 * Windows that tests have closed, the last one at the end. Later tests with the same options use them again: loading a
 * page takes 0.6 s of processor time in a used context, which still has its process and its cached scripts, and 1.5 s in a
 * new one.
 */
const closed: Window[] = [];
const maxClosed = 8;

/** Windows of the shared account that no test uses now. They still show a page. */
const kept: Window[] = [];

/** Removes the last window with these options from a list. */
function takeFrom(windows: Window[], options: string): Window | undefined {
  const at = windows.findLastIndex((one) => one.options === options);
  return at < 0 ? undefined : windows.splice(at, 1)[0];
}

async function newWindow(options: BrowserContextOptions, account: Account | undefined): Promise<Window> {
  const key = JSON.stringify(options);
  const isShared = account !== undefined && account === (await shared);
  const window =
    (isShared ? takeFrom(kept, key) : undefined) ??
    takeFrom(closed, key) ??
    (await clear(takeFrom(kept, key))) ??
    (await createWindow(options, key));
  opened.add(window);
  return window;
}

async function createWindow(options: BrowserContextOptions, key: string): Promise<Window> {
  // Animations draw 60 frames a second, which takes an eighth of the processor time of the tests.
  const defaults = { viewport: desktop, locale: "en", timezoneId: "UTC", reducedMotion: "reduce" as const };
  const context = await (await launch()).newContext({ ...defaults, serviceWorkers: "block", ...options });
  context.setDefaultTimeout(hangGuard);
  const page = await context.newPage();
  const window: Window = { context, page, options: key, altered: false, account: undefined };
  const { clock } = page;
  Object.defineProperty(page, "clock", { get: () => ((window.altered = true), clock) });
  for (const [target, name] of [
    [page, "addInitScript"],
    [context, "newCDPSession"],
  ] as const) {
    const original: unknown = Reflect.get(target, name);
    Object.defineProperty(target, name, {
      value: (...args: unknown[]): unknown => {
        window.altered = true;
        return Reflect.apply(original as (...args: unknown[]) => unknown, target, args);
      },
    });
  }
  return window;
}

/** Ends the use of a window by a test: undoes what the test has set, and keeps the window for another test if possible. */
async function release(window: Window): Promise<void> {
  const { context, page } = window;
  opened.delete(window);
  const { viewport, storageState, proxy, serviceWorkers } = JSON.parse(window.options) as BrowserContextOptions;
  // A proxy ends with its test, and a service worker with its window.
  const single = [storageState, proxy, serviceWorkers].some((option) => option !== undefined);
  if (window.altered || page.isClosed() || single) return context.close();
  // Playwright needs its own listeners of other events.
  for (const event of ["console", "pageerror", "request", "response", "dialog"]) {
    page.removeAllListeners(event);
    context.removeAllListeners(event);
  }
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await context.unrouteAll({ behavior: "ignoreErrors" });
  for (const other of context.pages()) if (other !== page) await other.close();
  await context.setOffline(false);
  await context.clearPermissions();
  await page.emulateMedia({
    media: null,
    colorScheme: null,
    reducedMotion: "reduce",
    forcedColors: null,
    contrast: null,
  });
  await page.setViewportSize(viewport ?? desktop);
  if (window.account !== undefined && window.account === (await shared)) kept.push(window);
  else await store(window);
}

/** Returns a window to its first state, without cookies and stored data. */
async function clear(window: Window | undefined): Promise<Window | undefined> {
  if (window === undefined) return undefined;
  const { context, page } = window;
  await page.goto(`${url}/health`);
  await context.clearCookies();
  await page.evaluate(() => sessionStorage.clear());
  const session = await context.newCDPSession(page);
  const storageTypes = "local_storage,indexeddb,cache_storage,service_workers";
  await session.send("Storage.clearDataForOrigin", { origin: url, storageTypes });
  await session.send("Page.resetNavigationHistory");
  await session.detach();
  window.altered = false;
  window.account = undefined;
  return window;
}

/** Clears a window and stores it for other tests. */
async function store(window: Window): Promise<void> {
  await clear(window);
  closed.push(window);
  if (closed.length > maxClosed) await closed.shift()!.context.close();
}

const hasApp = (page: Page): Promise<boolean> => page.evaluate(() => document.getElementById("root") !== null);

/** A separate browser window, signed in if an account is given. */
export class BrowserWindow {
  readonly unexpectedRefusals: string[] = [];
  readonly externalRequests: string[] = [];
  readonly pageErrors: string[] = [];

  private constructor(
    private readonly window: Window,
    private readonly origin: string,
  ) {}

  get context(): BrowserContext {
    return this.window.context;
  }

  get page(): Page {
    return this.window.page;
  }

  /** origin: the address of the service that the window uses, if it is another one than that of the requests. */
  static async open(
    path: string,
    account?: Account,
    options: BrowserContextOptions = {},
    origin = url,
  ): Promise<BrowserWindow> {
    const visit = new BrowserWindow(await newWindow(options, account), origin);
    const isKept =
      account !== undefined && visit.window.account === account && path !== "/health" && (await hasApp(visit.page));
    visit.window.account = account;
    if (account !== undefined) await visit.context.addCookies([account.cookie]);
    visit.watch(visit.page);
    if (isKept) await visit.follow(path);
    else await visit.page.goto(origin + path);
    return visit;
  }

  /** Opens an address as a link does, without loading the app again. */
  async follow(path: string): Promise<void> {
    const go = (to: string) => this.page.evaluate((address) => history.pushState(null, "", address), to);
    await go("/nothing"); // its page shows nothing of the one before it
    const shown = this.page.getByRole("heading", { level: 1, name: "Page not found" });
    const dialog = this.page.getByRole("dialog"); // that the test before has left open, or that has opened after its end
    await shown.or(dialog).first().waitFor();
    if (await dialog.isVisible()) await this.page.keyboard.press("Escape");
    await shown.waitFor();
    await go(path);
  }

  /** Another tab of the same window. */
  async tab(path: string): Promise<Page> {
    const page = await this.context.newPage();
    this.watch(page);
    await page.goto(this.origin + path);
    return page;
  }

  private watch(page: Page): void {
    page.on("console", (line) => {
      if (/Content Security Policy|Trusted Type/i.test(line.text())) this.unexpectedRefusals.push(line.text());
    });
    // A response that a test fulfils in place of the service has no such header.
    page.on("response", (response) => {
      if ("x-request-id" in response.headers())
        countRefusal(response.status(), response.request().method(), response.url());
    });
    page.on("pageerror", (error) => this.pageErrors.push(String(error)));
    page.on("request", (request) => {
      const to = request.url();
      if (!to.startsWith(this.origin) && to !== `${content}/` && !to.startsWith("data:") && !to.startsWith("blob:"))
        this.externalRequests.push(to);
    });
  }

  /** Closes the window. Expects no content security policy report, no page error and no request to another site. */
  async close(): Promise<void> {
    await release(this.window);
    expect(this.unexpectedRefusals, "reports of the content security policy").toEqual([]);
    expect(this.pageErrors, "errors of the page").toEqual([]);
    expect(this.externalRequests, "requests to other sites").toEqual([]);
  }
}

/**
 * Holds requests until the returned function has removed the session of the browser. Before that, no dialog about the lost
 * session opens, which would take the keys that the test presses.
 */
export async function holdUntilSessionEnds(
  { page, context }: BrowserWindow,
  path: RegExp,
): Promise<() => Promise<void>> {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  await page.route(path, async (route) => {
    await ended;
    await route.continue();
  });
  return async () => {
    await context.clearCookies();
    end();
  };
}
