// Delivers outbox messages exactly once, across reloads, network failures and several tabs: a message is stored before
// it is sent, sent with the same key until it is accepted or refused, and removed after acceptance. One tab at a time
// sends the messages of a lane; the other tabs wait for the lane's lock and take over when that tab closes.
import type { Schemas } from "./client";
import {
  alreadyExists,
  type Created,
  creationBody,
  decideRetry,
  laneOf,
  keyExpired,
  placementOf,
  remainingWait,
  failureOf,
  unknownTools,
  withoutUnknownTools,
  type NewConversation,
  type OutboxMessage,
} from "./outbox-message";
import { readRefusal, Refusal } from "./problem";

/** The storage of outbox messages, shared by the tabs of a browser. */
export interface OutboxStore {
  all(): Promise<OutboxMessage[]>;
  get(key: string): Promise<OutboxMessage | undefined>;
  put(message: OutboxMessage): Promise<void>;
  /** Replaces the message stored under the same key; false if there is none because the user withdrew it. */
  replace(message: OutboxMessage): Promise<boolean>;
  remove(key: string): Promise<void>;
}

/** The dependencies of Delivery; tests replace them. */
export interface DeliveryDependencies {
  store: OutboxStore;
  /** Runs work under a lock with this name, of which one tab of the browser has at most one; waits for the lock. */
  withLock(name: string, work: () => Promise<void>): Promise<void>;
  /** Sends a request. Throws a Refusal if there is no response. */
  send(path: string, init: { method: string; body: string; headers: Record<string, string> }): Promise<Response>;
  /** Waits; ends early when a retry may succeed or when the message with this key was changed. */
  pause(ms: number, key: string): Promise<void>;
  /** Asks the user to sign in again. Returns false if that was done since the request of the refusal was sent. */
  noticeSignOut(refusal: Refusal): boolean;
  now(): number;
  /** The signed-in account; null: none. */
  account(): string | null;
  /** Removes tools that the service does not have from the choice for the next messages of a conversation. */
  forgetTools(conversation: string, names: readonly string[]): void;
  /** Returns the parts of the service that are down, to explain a 503. */
  fetchDownParts(): Promise<readonly string[]>;
  /** Reports to every tab that a message has changed; null: it is not sent, because what it replaces has changed. */
  changed(key: string, message: OutboxMessage | null): void;
}

/** Ends a response whose body nobody reads. It may be read already. */
const discard = (response: Response): void => void response.body?.cancel().catch(() => {});

/** The refusal of a message whose key the service may have forgotten, so that its outcome cannot be determined. */
const outcomeUnknown = new Refusal(0, "outcome_unknown", "", null, 0);

export class Delivery {
  readonly #deps: DeliveryDependencies;
  readonly #lanes = new Map<string, { again: boolean }>();

  constructor(deps: DeliveryDependencies) {
    this.#deps = deps;
  }

  /** Stores a message, then sends it. */
  async enqueue(message: OutboxMessage): Promise<void> {
    await this.#deps.store.put(message);
    this.#deps.changed(message.key, message);
    await this.deliverLane(laneOf(message));
  }

  /** Continues the delivery of every stored message, from earlier pages and from other tabs. */
  async resume(): Promise<void> {
    const messages = await this.#deps.store.all();
    await Promise.all([...new Set(messages.map(laneOf))].map((lane) => this.deliverLane(lane)));
  }

  /** Sends the pending messages of a lane. Resolves when none is left, or at once if a call for the lane is running. */
  async deliverLane(lane: string): Promise<void> {
    const running = this.#lanes.get(lane);
    if (running !== undefined) {
      running.again = true;
      return;
    }
    const mine = { again: true };
    this.#lanes.set(lane, mine);
    try {
      while (mine.again) {
        mine.again = false;
        await this.#deps.withLock(`turnstone-lane/${lane}`, () => this.#drainLane(lane));
      }
    } finally {
      this.#lanes.delete(lane);
    }
  }

  async #drainLane(lane: string): Promise<void> {
    for (;;) {
      const due = (await this.#deps.store.all())
        .filter(
          (message) =>
            laneOf(message) === lane && message.state !== "refused" && message.account === this.#deps.account(),
        )
        .sort((a, b) => a.writtenAt - b.writtenAt)[0];
      if (due === undefined) return;
      await this.#deliver(due.key);
    }
  }

  /** Sends a message until it is accepted, refused or withdrawn, or its account is no longer the signed-in one. */
  async #deliver(key: string): Promise<void> {
    for (let failures = 0; ; failures++) {
      const stored = await this.#deps.store.get(key);
      if (stored === undefined || stored.state === "refused" || stored.account !== this.#deps.account()) return;
      const wait = remainingWait(stored, this.#deps.now());
      if (wait > 0) {
        await this.#deps.pause(wait, key);
        continue;
      }
      if (keyExpired(stored, this.#deps.now())) {
        await this.#store({ ...stored, state: "refused", failure: failureOf(outcomeUnknown, 0) });
        return;
      }
      const message: OutboxMessage = {
        ...stored,
        state: "sending",
        firstSentAt: stored.firstSentAt ?? this.#deps.now(),
      };
      if (!(await this.#store(message))) return;
      try {
        if (message.newConversation !== undefined) await this.#createConversation(message, message.newConversation);
        if (message.replaces?.cancelled === false) {
          const repeated = stored.firstSentAt !== null;
          if (!(await this.#cancelReplaced(message, message.replaces, repeated))) {
            await this.#deps.store.remove(key);
            this.#deps.changed(key, null);
            return;
          }
        }
        const became = await this.#sendRequest(message);
        await this.#deps.store.remove(key);
        this.#deps.changed(key, { ...message, state: "accepted", failure: null, ...became });
        return;
      } catch (refusal) {
        if (!(refusal instanceof Refusal)) throw refusal;
        if (!(await this.#handleRefusal(message, refusal, failures))) return;
      }
    }
  }

  /** Creates the conversation of a message. */
  async #createConversation(message: OutboxMessage, fresh: NewConversation): Promise<void> {
    const response = await this.#deps.send(`/conversations/${message.conversationID}`, {
      method: "PUT",
      body: JSON.stringify(creationBody(fresh)),
      headers: { "Content-Type": "application/json" },
    });
    const refusal = response.ok ? null : await readRefusal(response);
    if (refusal !== null && !alreadyExists(refusal, fresh)) throw refusal;
    if (fresh.project === undefined) discard(response);
    else await this.#place(message, fresh, (refusal?.problem?.current ?? (await response.json())) as Created);
    const { newConversation: _, ...opened } = message;
    await this.#store(opened);
  }

  /** Puts the created conversation of a message into its project. */
  async #place(message: OutboxMessage, fresh: NewConversation, created: Created): Promise<void> {
    const request = placementOf(fresh, created);
    if (request === null) return;
    const response = await this.#deps.send(`/conversations/${message.conversationID}/project`, {
      method: "PUT",
      body: JSON.stringify(request.body),
      headers: { "Content-Type": "application/json", ...request.header },
    });
    if (!response.ok) throw await readRefusal(response);
    discard(response);
  }

  /**
   * Cancels the follow-up that a message replaces. Returns false if it was started or changed in the meantime: then its
   * text is not sent a second time. The message is already stored on this device, so no crash can lose the text. If the
   * response to the cancellation was lost, a repeat finds the follow-up cancelled and the message is sent; at worst,
   * another device has cancelled it at the same moment.
   */
  async #cancelReplaced(
    message: OutboxMessage,
    { followUpID, version }: NonNullable<OutboxMessage["replaces"]>,
    repeated: boolean,
  ): Promise<boolean> {
    const response = await this.#deps.send(`/conversations/${message.conversationID}/follow-ups/${followUpID}`, {
      method: "PATCH",
      body: JSON.stringify({ state: "cancelled", version }),
      headers: { "Content-Type": "application/json" },
    });
    if (!response.ok) {
      const refusal = await readRefusal(response);
      const current = refusal.problem?.current as Schemas["FollowUp"] | null | undefined;
      const cancelled = repeated && current?.state === "cancelled" && current.version === version + 1;
      if (refusal.status === 404 || (refusal.status === 409 && !cancelled)) return false;
      if (!cancelled) throw refusal;
    }
    discard(response);
    await this.#store({ ...message, replaces: { followUpID, version, cancelled: true } });
    return true;
  }

  /** Sends the request; returns the turn that the message started or the follow-up that it became, if any. */
  async #sendRequest(message: OutboxMessage): Promise<Pick<OutboxMessage, "turnID" | "followUpID">> {
    const steers = message.targetTurn !== undefined;
    const response = await this.#deps.send(steers ? "/chat/steering" : "/chat", {
      method: "POST",
      body: message.body,
      headers: {
        "Content-Type": "application/json",
        ...(steers ? {} : { Accept: "text/event-stream", "Idempotency-Key": message.key }),
      },
    });
    if (!response.ok) throw await readRefusal(response);
    if (response.status === 202 && !steers) {
      // The message is accepted even if the body cannot be read.
      const item = (await response.json().catch(() => null)) as Schemas["FollowUp"] | null;
      return { turnID: null, followUpID: item?.follow_up_id ?? null };
    }
    // The view of a turn opens an event stream of its own, so this body is not read.
    discard(response);
    return { turnID: response.headers.get("X-Turn-Id"), followUpID: null };
  }

  /** Stores the outcome of a refused attempt. Returns true, after the pause, if the message is to be sent again. */
  async #handleRefusal(message: OutboxMessage, refusal: Refusal, failures: number): Promise<boolean> {
    const unknown = unknownTools(message, refusal);
    if (unknown.length > 0) {
      // The service names one at a time; each attempt has fewer, so this ends.
      this.#deps.forgetTools(message.conversationID, unknown);
      return this.#store(withoutUnknownTools(message, unknown));
    }
    const verdict = decideRetry(message, refusal, failures, Math.random());
    if (!verdict.again) {
      // A refused request had no effect, so the key is unused.
      await this.#store({
        ...message,
        state: "refused",
        firstSentAt: null,
        failure: failureOf(refusal, this.#deps.now()),
      });
      return false;
    }
    const down = refusal.status === 503 ? await this.#deps.fetchDownParts() : [];
    if (
      !(await this.#store({
        ...message,
        state: "waiting",
        failure: failureOf(refusal, this.#deps.now(), verdict.wait, down),
      }))
    )
      return false;
    // Checked after the write: the user may have signed in during it, and nothing else would end the pause.
    if (refusal.status === 401 && !this.#deps.noticeSignOut(refusal)) return true;
    await this.#deps.pause(verdict.wait, message.key);
    return true;
  }

  /** Stores a changed message; false if the user withdrew it in the meantime. */
  async #store(message: OutboxMessage): Promise<boolean> {
    if (!(await this.#deps.store.replace(message))) return false;
    this.#deps.changed(message.key, message);
    return true;
  }
}
