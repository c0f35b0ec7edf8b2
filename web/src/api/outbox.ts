// The outbox of this browser: messages that the service has not yet accepted, shown in every tab and sent by one.
import { useMemo } from "react";
import { create } from "zustand";
import { useShallow } from "zustand/react/shallow";
import { attach, type Attachment } from "./attachments";
import { checkSession, noticeSignOut, useSessionState } from "./session-state";
import { send, type Schemas } from "./client";
import { Delivery } from "./delivery";
import {
  bodyOf,
  laneOf,
  type BusyAction,
  type OutboxMessage,
  type Profile,
  type MessageInput,
  type DeliveryFailure,
} from "./outbox-message";
import { createOutboxStore } from "./outbox-store";
import { forgetTools, toolsOf } from "./tool-choice";
import { refetch, conversationQuery, queryClient, sessionQuery } from "./queries";

export type { BusyAction, OutboxMessage, Profile, DeliveryFailure };

/** A sent message that is not yet among the conversation's messages. */
export interface Outgoing {
  /** The identifier; also the Idempotency-Key. */
  key: string;
  conversationID: string;
  text: string;
  attachments?: readonly Attachment[];
  branch?: Schemas["BranchRequest"];
  /** When it was written, in milliseconds since 1970. */
  writtenAt: number;
  /**
   * sending: a request is in flight. waiting: it will be retried automatically; problem is the reason. refused: nothing
   * happens until the user decides; problem is the reason. accepted: the service has stored it, and the conversation's
   * messages are being refetched.
   */
  state: OutboxMessage["state"];
  problem: DeliveryFailure | null;
  /** After acceptance: the turn that the message started, if any. */
  turnID: string | null;
}

interface OutboxState {
  /** The outbox messages of the signed-in account, in the order in which they were written. */
  list: readonly OutboxMessage[];
  /** Whether the messages stored by earlier pages are in the list. */
  loaded: boolean;
}

export const useOutbox = create<OutboxState>(() => ({ list: [], loaded: false }));

/** Whether a rate-limited message is sent automatically when the limit ends. Stored on this device. */
export const useAutoSend = create<{ autoSend: boolean }>(() => ({
  autoSend: localStorage.getItem("turnstone-auto-send") === "on",
}));

/** When the rate limit of this account ends, in milliseconds since 1970; 0: no limit was seen. */
export const useRateLimit = create<{ until: number }>(() => ({ until: 0 }));

const store = createOutboxStore();
let channel: BroadcastChannel | null = null;
/** Callbacks that end the pause of a waiting message: of every message (null), or of the one with the key. */
const pauseEnders = new Set<(key: string | null) => void>();
/** The timeout of a request in milliseconds; then it is repeated. */
const requestTimeout = 25_000;

const account = (): string | null => queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? null;

const delivery = new Delivery({
  store,
  withLock: async (name, work) => void (await navigator.locks.request(name, work)),
  send: (path, init) =>
    send(new Request(new URL(path, location.origin), { ...init, signal: AbortSignal.timeout(requestTimeout) })),
  pause,
  noticeSignOut,
  now: () => Date.now(),
  account,
  forgetTools,
  fetchDownParts: fetchDownParts,
  changed(key, message) {
    const before = useOutbox.getState().list.find((one) => one.key === key);
    channel?.postMessage({ key, message });
    updateList(key, message);
    if (message?.state === "accepted") notifyListeners(message, "accepted", true);
    if (message === null && before !== undefined) notifyListeners(before, "dropped", true);
  },
});

/** Applies a change that another tab has made. */
function applyChange({ data: { key, message } }: MessageEvent<{ key: string; message: OutboxMessage | null }>): void {
  for (const wake of pauseEnders) wake(key);
  const before = useOutbox.getState().list.find((one) => one.key === key);
  updateList(key, message);
  if (message?.state === "accepted") notifyListeners(message, "accepted", false);
  else if (message === null && before !== undefined && before.state !== "accepted")
    notifyListeners(before, "withdrawn", false);
  if (message?.state === "waiting" && message.failure?.status === 401) void checkSession();
  // Wait for the lane's lock: if the sending tab closes, this one continues.
  if (message !== null && message.state !== "accepted" && message.account === account())
    void delivery.deliverLane(laneOf(message));
}

/**
 * Called in every tab when the service has accepted a message or the user has withdrawn it, and in the sending tab when a
 * message was dropped because the follow-up that it replaces was started or changed. here: by this tab.
 */
type Listener = (message: OutboxMessage, end: "accepted" | "withdrawn" | "dropped", here: boolean) => void;
const listeners = new Set<Listener>();
/** Returns a function that ends the calls. */
export const onMessageSettled = (listener: Listener): (() => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};
const notifyListeners: Listener = (...end) => listeners.forEach((listener) => listener(...end));

function updateList(key: string, message: OutboxMessage | null): void {
  const others = useOutbox.getState().list.filter((one) => one.key !== key);
  const mine = message !== null && message.account === account();
  useOutbox.setState({ list: mine ? [...others, message].sort((a, b) => a.writtenAt - b.writtenAt) : others });
  if (!mine) return;
  if (message.state === "accepted") void removeAfterRefetch(message);
  if (message.failure?.code === "rate_limited")
    useRateLimit.setState(({ until }) => ({ until: Math.max(until, message.failure!.retryAt) }));
  // This tab showed an outdated state: refetch before the user decides.
  if (message.state === "refused" && message.failure?.status === 409) void reload(message.conversationID);
}

/** Removes an accepted message from the list once the conversation and the conversation list were refetched. */
async function removeAfterRefetch(message: OutboxMessage): Promise<void> {
  await Promise.all([refetch(["conversations"]), reload(message.conversationID)]);
  updateList(message.key, null);
}

const reload = (conversation: string): Promise<unknown> =>
  Promise.all(["conversation", "messages"].map((what) => refetch([what, conversation])));

/** Sends a chat message or a steering input: stores it on this device, then sends it exactly once. Returns its key. */
export function sendMessage(input: MessageInput): string {
  const me = account();
  if (me === null) throw new Error("no account is signed in");
  const { newConversation, ...rest } = input;
  const page = queryClient.getQueryData(conversationQuery(input.conversationID).queryKey);
  // An earlier message may not have created the conversation yet.
  const earlier = useOutbox.getState().list.find((one) => one.conversationID === input.conversationID);
  const opening = newConversation ?? earlier?.newConversation ?? (page === undefined ? { profile: null } : undefined);
  const tools = input.tools ?? toolsOf(input.conversationID);
  const message: Omit<OutboxMessage, "body"> = {
    ...rest,
    ...(tools === undefined ? {} : { tools }),
    key: crypto.randomUUID(),
    account: me,
    ...(opening === undefined || input.targetTurn !== undefined ? {} : { newConversation: opening }),
    writtenAt: nextTimestamp(),
    firstSentAt: null,
    autoSend: useAutoSend.getState().autoSend,
    state: "sending",
    failure: null,
    turnID: null,
    followUpID: null,
  };
  enqueue({ ...message, body: bodyOf(message) });
  return message.key;
}

let last = 0;
/** The current time, increased so that every call returns a later one: it is the order of the messages. */
const nextTimestamp = (): number => (last = Math.max(Date.now(), last + 1));

/** The keys of the messages sent from this tab. */
const sentKeys = new Set<string>();
/** Whether a message was sent from this tab; other tabs show it too. */
export const sentFromThisTab = (key: string): boolean => sentKeys.has(key);

function enqueue(message: OutboxMessage): void {
  sentKeys.add(message.key);
  updateList(message.key, message);
  void navigator.storage?.persist?.().catch(() => false);
  void delivery.enqueue(message);
}

/**
 * Sends a refused message again, or a waiting one at once. With changes, or if the outcome of the message is unknown, a
 * message with a new key replaces it. With changes, the new message has no expected head, because the user has seen the
 * messages that arrived in the meantime.
 */
export function retryOutgoing(key: string, changes?: { ifBusy: BusyAction }): void {
  const message = useOutbox.getState().list.find((one) => one.key === key);
  if (message === undefined || message.state === "sending" || message.state === "accepted") return;
  if (changes === undefined && message.state === "waiting") {
    channel?.postMessage({ key, message }); // the message may be waiting in another tab
    return pauseEnders.forEach((wake) => wake(key));
  }
  if (changes === undefined && message.failure?.code !== "outcome_unknown")
    return storeDecision({ ...message, state: "waiting", failure: null });
  drop(key);
  const { targetTurn, expectedHead, body: _, ...kept } = message;
  const ifBusy = changes?.ifBusy ?? message.ifBusy;
  const target = ifBusy === "steer" || ifBusy === "interrupt" ? (targetTurn ?? message.failure?.liveTurn) : null;
  const next: Omit<OutboxMessage, "body"> = {
    ...kept,
    ifBusy,
    ...(target == null ? {} : { targetTurn: target }),
    ...(changes !== undefined || expectedHead === undefined ? {} : { expectedHead }),
    key: crypto.randomUUID(),
    firstSentAt: null,
    state: "sending",
    failure: null,
  };
  enqueue({ ...next, body: bodyOf(next) });
}

/** Sets whether a rate-limited message is sent automatically when the limit ends; also applies to later messages. */
export function setMessageAutoSend(key: string, autoSend: boolean): void {
  useAutoSend.setState({ autoSend });
  const message = useOutbox.getState().list.find((one) => one.key === key);
  if (message !== undefined && message.state !== "sending" && message.state !== "accepted")
    storeDecision({ ...message, autoSend, state: autoSend ? "waiting" : "refused" });
}

/** Stores a user's decision about a message, notifies the tabs and resumes the delivery of its lane. */
function storeDecision(message: OutboxMessage): void {
  void store.replace(message).then(() => {
    updateList(message.key, message);
    channel?.postMessage({ key: message.key, message });
    pauseEnders.forEach((wake) => wake(message.key));
    return delivery.deliverLane(laneOf(message));
  });
}

/** Removes a message that was not accepted. Its files return to the message that is being written; returns its text. */
export function discardOutgoing(key: string): string {
  const message = useOutbox.getState().list.find((one) => one.key === key);
  drop(key);
  if (message === undefined) return "";
  notifyListeners(message, "withdrawn", true);
  if (message.branch === undefined) attach(message.conversationID, message.attachments ?? []);
  return message.text;
}

function drop(key: string): void {
  updateList(key, null);
  void store.remove(key).then(() => {
    pauseEnders.forEach((wake) => wake(key));
    channel?.postMessage({ key, message: null });
  });
}

/** The outbox messages to show in a conversation, in order; queued messages and steering inputs are not among them. */
export function useOutgoing(conversationID: string): readonly Outgoing[] {
  const messages = useOutbox(
    useShallow(({ list }) =>
      list.filter(
        (one) => one.conversationID === conversationID && one.targetTurn === undefined && one.ifBusy === "reject",
      ),
    ),
  );
  return useMemo(
    () => messages.map(({ failure, ...message }): Outgoing => ({ ...message, problem: failure })),
    [messages],
  );
}

/** Waits; ends early when the network is back, an account signs in, or the message was changed. */
function pause(ms: number, key: string): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      pauseEnders.delete(wake);
      stopWatching();
      resolve();
    };
    const wake = (which: string | null) => (which === null || which === key) && end();
    const timer = Number.isFinite(ms) ? setTimeout(end, ms) : undefined;
    window.addEventListener("online", end);
    pauseEnders.add(wake);
    const stopWatching = useSessionState.subscribe(({ lost }, before) => before.lost && !lost && end());
  });
}

/** Fetches the parts of the service that are down; empty if there is no usable response. */
async function fetchDownParts(): Promise<readonly string[]> {
  try {
    const response = await send(
      new Request(new URL("/ready", location.origin), { cache: "no-store", signal: AbortSignal.timeout(5_000) }),
    );
    const { checks } = (await response.json()) as Schemas["Readiness"];
    return Object.entries(checks ?? {}).flatMap(([part, state]) => (state === "down" ? [part] : []));
  } catch {
    return [];
  }
}

/** Shows and delivers the messages stored by earlier pages, once the signed-in account is known. */
async function loadStoredMessages(): Promise<void> {
  const me = account();
  if (me === null) return;
  const kept = (await store.all()).filter((message) => message.account === me);
  const known = useOutbox.getState().list;
  useOutbox.setState({
    list: [...known, ...kept.filter((message) => known.every((one) => one.key !== message.key))].sort(
      (a, b) => a.writtenAt - b.writtenAt,
    ),
    loaded: true,
  });
  await delivery.resume();
}

let loadedAccount: string | null = null;
const loadOncePerAccount = () => {
  const me = account();
  if (me === loadedAccount) return;
  loadedAccount = me;
  void loadStoredMessages();
};

/** Starts the outbox: delivers the messages stored by earlier pages, and follows those of the other tabs. */
export function startOutbox(): void {
  channel = new BroadcastChannel("turnstone-outbox");
  channel.onmessage = applyChange;
  useAutoSend.subscribe(({ autoSend }) => localStorage.setItem("turnstone-auto-send", autoSend ? "on" : "off"));
  queryClient.getQueryCache().subscribe(loadOncePerAccount);
  loadOncePerAccount();
}
