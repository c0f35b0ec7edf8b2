// A fake browser and service for tests of Delivery: tabs that may crash between any two steps, a network that loses
// requests and responses, and a service that records the messages it accepts.
import { Delivery, type OutboxStore } from "./delivery";
import { bodyOf, laneOf, type OutboxMessage } from "./outbox-message";
import { noteSignIns, Refusal } from "./problem";

export function outboxMessage(text: string, at: number, more: Partial<OutboxMessage> = {}): OutboxMessage {
  const whole = {
    key: `key-${text}`,
    account: "acct_1",
    conversationID: "conv_1",
    text,
    ifBusy: "queue" as const,
    writtenAt: at,
    firstSentAt: null,
    autoSend: false,
    state: "sending" as const,
    failure: null,
    turnID: null,
    followUpID: null,
    ...more,
  };
  return { ...whole, body: bodyOf(whole) };
}

/** A service that accepts each key once. */
export class FakeService {
  readonly accepted: string[] = [];
  readonly conversations = new Set<string>();
  /** The conversations among them that are temporary. */
  readonly temporary = new Set<string>();
  readonly #responses = new Map<string, { body: string; turn: string | null; followUp: string | null }>();
  /** A follow-up of the conversation. */
  followUp = { follow_up_id: "fu_0", state: "queued", version: 1, content: "one" };
  /** Whether a turn is live; a message is then queued as a follow-up. */
  live = false;
  /** The names of its tools. */
  tools: readonly string[] = [];
  requests = 0;
  /** Returns the fault of the next request; null: none. */
  fault: () => "lost" | "unanswered" | "unavailable" | "limited" | "busy" | "signed_out" | null = () => null;

  take(path: string, init: { method: string; body: string; headers: Record<string, string> }): Response {
    this.requests += 1;
    const fault = this.fault();
    if (fault === "lost") throw new Refusal(0, "unreachable", "", null, 0);
    if (fault === "unavailable") return problem(503, "unavailable");
    if (fault === "limited") return problem(429, "rate_limited");
    if (fault === "busy") return problem(409, "turn_in_progress");
    if (fault === "signed_out") return problem(401, "unauthenticated");
    const response = this.#handle(path, init);
    if (fault === "unanswered") throw new Refusal(0, "unreachable", "", null, 0);
    return response;
  }

  #handle(
    path: string,
    { method, body, headers }: { method: string; body: string; headers: Record<string, string> },
  ): Response {
    if (method === "PUT") {
      const id = path.split("/").at(-1)!;
      const { temporary = false } = JSON.parse(body) as { temporary?: boolean };
      if (this.conversations.has(id) && temporary !== this.temporary.has(id))
        return problem(409, "version_required", { temporary: this.temporary.has(id) });
      this.conversations.add(id);
      if (temporary) this.temporary.add(id);
      return Response.json({}, { status: 201 });
    }
    if (method === "PATCH") {
      const change = JSON.parse(body) as { state: string; version: number };
      if (change.version !== this.followUp.version) return problem(409, "stale_version", this.followUp);
      this.followUp = { ...this.followUp, state: change.state, version: change.version + 1 };
      return Response.json(this.followUp);
    }
    const sent = JSON.parse(body) as {
      conversation_id?: string;
      client_steering_id?: string;
      input: { text: string }[];
      tools?: { off?: string[] };
    };
    const unknown = (sent.tools?.off ?? []).findIndex((name) => !this.tools.includes(name));
    if (unknown >= 0) return problem(422, "invalid", undefined, [`body.tools.off[${unknown}]`]);
    const key = headers["Idempotency-Key"] ?? sent.client_steering_id!;
    const known = this.#responses.get(key);
    if (known !== undefined && known.body !== body) return problem(422, "idempotency_mismatch");
    if (known === undefined) {
      if (path === "/chat" && !this.conversations.has(sent.conversation_id!)) return problem(404, "not_found");
      this.accepted.push(sent.input[0]!.text);
      const queued = path === "/chat" && this.live;
      this.#responses.set(key, {
        body,
        turn: queued ? null : `turn_${this.accepted.length}`,
        followUp: queued ? `fu_${this.accepted.length}` : null,
      });
    }
    if (path === "/chat/steering")
      return Response.json({ client_steering_id: key, state: "accepted" }, { status: 202 });
    const { turn, followUp } = this.#responses.get(key)!;
    return turn === null
      ? Response.json({ follow_up_id: followUp }, { status: 202 })
      : new Response("", { headers: { "X-Turn-Id": turn } });
  }
}

function problem(status: number, code: string, current?: object, fields: readonly string[] = []): Response {
  const errors = fields.map((field) => ({ field, message: "is wrong" }));
  return Response.json(
    { status, code, detail: "", current, errors },
    { status, headers: status === 429 ? { "Retry-After": "5" } : {} },
  );
}

interface Lock {
  holder: FakeTab;
  waiting: { tab: FakeTab; enter: () => void }[];
}

/** The state that the tabs of one browser share. */
export class FakeBrowser {
  readonly disk = new Map<string, OutboxMessage>();
  readonly locks = new Map<string, Lock>();
  readonly tabs = new Set<FakeTab>();
  /** The keys of all messages that were ever on disk. */
  readonly storedKeys = new Set<string>();
  /** Called when a message was replaced on disk, before its tab continues. */
  replaced: (message: OutboxMessage) => void = () => {};
  constructor(readonly service: FakeService) {}
}

const never = new Promise<never>(() => {});

/** One tab. After stepsLeft steps it disappears, as in a reload or a crash. */
export class FakeTab {
  readonly delivery: Delivery;
  readonly accepted: OutboxMessage[] = [];
  readonly pauses: number[] = [];
  /** The names of tools that were removed from the choices. */
  readonly forgotten: string[] = [];
  account: string | null = "acct_1";
  now = 1_000_000;
  crashed = false;
  /** Whether the user has to sign in again. */
  lost = false;
  #signIns = 0;
  /** Ends the pause until a sign-in. */
  #endPause: () => void = () => {};
  #signalPause: () => void = () => {};
  /** Resolves when a message waits for a sign-in. */
  readonly waitsForSignIn = new Promise<void>((resolve) => (this.#signalPause = resolve));
  readonly #working = new Set<Promise<void>>();
  #signalCrash: () => void = () => {};
  readonly #crashSignal = new Promise<void>((resolve) => (this.#signalCrash = resolve));

  constructor(
    readonly browser: FakeBrowser,
    private stepsLeft = Infinity,
  ) {
    browser.tabs.add(this);
    this.delivery = new Delivery({
      store: this.#store(),
      withLock: (name, work) => this.#withLock(name, work),
      send: (path, init) => {
        const before = this.#signIns;
        return this.#step(() => noteSignIns(browser.service.take(path, init), before));
      },
      pause: async (ms) => {
        await this.#step(() => {
          this.pauses.push(ms);
          if (Number.isFinite(ms)) this.now += ms;
        });
        if (Number.isFinite(ms)) return;
        const ended = new Promise<void>((resolve) => (this.#endPause = resolve));
        this.#signalPause();
        await ended;
      },
      noticeSignOut: ({ signIns }) => signIns === this.#signIns && (this.lost = true),
      now: () => this.now,
      account: () => this.account,
      forgetTools: (_, names) => void this.forgotten.push(...names),
      fetchDownParts: () => this.#step(() => ["persistence"]),
      changed: (_, changed) => {
        if (this.crashed) return;
        if (changed?.state === "accepted") this.accepted.push(changed);
        for (const other of browser.tabs)
          if (other !== this && changed !== null && changed.state !== "accepted")
            other.track(other.delivery.deliverLane(laneOf(changed)));
      },
    });
  }

  /** Registers work, so that idle waits for it. */
  track(work: Promise<void>): void {
    const tracked: Promise<void> = work.finally(() => this.#working.delete(tracked));
    this.#working.add(tracked);
  }

  /** Resolves when all registered work is done, or when the tab has disappeared. */
  async idle(): Promise<void> {
    while (!this.crashed && this.#working.size > 0) await Promise.race([Promise.all(this.#working), this.#crashSignal]);
  }

  /** Signs the user in again, which ends only a pause that has begun. */
  signIn(): void {
    this.#signIns += 1;
    this.lost = false;
    this.#endPause();
  }

  crash(): void {
    this.crashed = true;
    this.browser.tabs.delete(this);
    for (const lock of this.browser.locks.values()) lock.waiting = lock.waiting.filter(({ tab }) => tab !== this);
    for (const [name, lock] of this.browser.locks) if (lock.holder === this) this.#release(name, lock);
    this.#signalCrash();
  }

  /** Runs an asynchronous effect. The tab may disappear before the effect or after it. */
  async #step<T>(effect: () => T): Promise<T> {
    await this.#countStep();
    const result = effect();
    await this.#countStep();
    return result;
  }

  async #countStep(): Promise<void> {
    await Promise.resolve();
    if (!this.crashed && --this.stepsLeft <= 0) this.crash();
    if (this.crashed) await never;
  }

  #store(): OutboxStore {
    const { disk, storedKeys } = this.browser;
    return {
      all: () => this.#step(() => [...disk.values()].map((one) => structuredClone(one))),
      get: (key) => this.#step(() => structuredClone(disk.get(key))),
      put: (one) =>
        this.#step(() => {
          disk.set(one.key, structuredClone(one));
          storedKeys.add(one.key);
        }),
      replace: (one) =>
        this.#step(() => {
          if (!disk.has(one.key)) return false;
          disk.set(one.key, structuredClone(one));
          this.browser.replaced(one);
          return true;
        }),
      remove: (key) => this.#step(() => void disk.delete(key)),
    };
  }

  async #withLock(name: string, work: () => Promise<void>): Promise<void> {
    if (this.crashed) await never;
    const { locks } = this.browser;
    const lock = locks.get(name);
    if (lock === undefined) locks.set(name, { holder: this, waiting: [] });
    else await new Promise<void>((enter) => lock.waiting.push({ tab: this, enter }));
    try {
      await work();
    } finally {
      if (!this.crashed) this.#release(name, locks.get(name)!);
    }
  }

  #release(name: string, lock: Lock): void {
    const next = lock.waiting.shift();
    if (next === undefined) return void this.browser.locks.delete(name);
    lock.holder = next.tab;
    next.enter();
  }
}
