// The outbox of this browser: what was sent and is not yet answered, shown in every tab and delivered by one.
import { useMemo } from "react";
import { create } from "zustand";
import { useShallow } from "zustand/react/shallow";
import { useAccess } from "./access";
import { send, type Schemas } from "./client";
import { Delivery } from "./delivery";
import { bodyOf, laneOf, type Busy, type Letter, type Profile, type Sending, type Trouble } from "./letter";
import { browserStore } from "./letter-store";
import { again, conversationQuery, queryClient, sessionQuery } from "./queries";

export type { Busy, Letter, Profile, Trouble };

/** A message of which the conversation's messages do not yet tell. */
export interface Outgoing {
  /** Names it; also its Idempotency-Key. */
  key: string;
  conversationID: string;
  text: string;
  branch?: Schemas["BranchRequest"];
  /** When it was written, in milliseconds. */
  at: number;
  /**
   * sending: a request is under way. waiting: it is tried again by itself, problem says why. refused: nothing happens
   * until the user decides, problem says why. accepted: the service has it, and it will be in the messages at once.
   */
  state: Letter["state"];
  problem: Trouble | null;
  /** Of an accepted one: the turn that it began. */
  turnID: string | null;
}

interface Letters {
  /** Those of the signed-in account, in the order in which they were written. */
  list: readonly Letter[];
  /** What earlier pages have left is among them. */
  loaded: boolean;
}

export const useLetters = create<Letters>(() => ({ list: [], loaded: false }));

/** Whether a message that came over a limit is sent by itself when the limit is over; this device remembers. */
export const usePatience = create<{ patient: boolean }>(() => ({ patient: localStorage.getItem("turnstone-auto-send") === "on" }));
usePatience.subscribe(({ patient }) => localStorage.setItem("turnstone-auto-send", patient ? "on" : "off"));

/** Until when the service takes no more messages of this account, in milliseconds since 1970. */
export const useLimit = create<{ until: number }>(() => ({ until: 0 }));

const store = browserStore();
const between = new BroadcastChannel("turnstone-outbox");
/** Ends the pauses of letters that wait: all, or the one that is named. */
const wakes = new Set<(key: string | null) => void>();
/** How long one request may be without an answer, in milliseconds, before it is repeated. */
const patience = 25_000;

const account = (): string | null => queryClient.getQueryData(sessionQuery.queryKey)?.account.account_id ?? null;

const delivery = new Delivery({
  store,
  alone: async (name, work) => void (await navigator.locks.request(name, work)),
  send: (path, init) => send(new Request(new URL(path, location.origin), { ...init, signal: AbortSignal.timeout(patience) })),
  pause,
  now: () => Date.now(),
  account,
  down: whatIsDown,
  changed(key, letter) {
    between.postMessage({ key, letter });
    show(key, letter);
    if (letter?.state === "accepted") tell(letter, "accepted", true);
  },
});

between.onmessage = ({ data: { key, letter } }: MessageEvent<{ key: string; letter: Letter | null }>) => {
  for (const wake of wakes) wake(key);
  const before = useLetters.getState().list.find((one) => one.key === key);
  show(key, letter);
  if (letter?.state === "accepted") tell(letter, "accepted", false);
  else if (letter === null && before !== undefined && before.state !== "accepted") tell(before, "taken back", false);
  // Stand by: should the tab that sends go away, this one goes on.
  if (letter !== null && letter.state !== "accepted" && letter.account === account()) void delivery.tend(laneOf(letter));
};

/** Told in every tab: the service has accepted a letter, or the user has taken it back. here: this tab has seen to it. */
type Listener = (letter: Letter, end: "accepted" | "taken back", here: boolean) => void;
const listeners = new Set<Listener>();
export const whenLetterEnds = (listener: Listener): void => void listeners.add(listener);
const tell: Listener = (...end) => listeners.forEach((listener) => listener(...end));

function show(key: string, letter: Letter | null): void {
  const others = useLetters.getState().list.filter((one) => one.key !== key);
  const mine = letter !== null && letter.account === account();
  useLetters.setState({ list: mine ? [...others, letter].sort((a, b) => a.at - b.at) : others });
  if (!mine) return;
  if (letter.state === "accepted") void settled(letter);
  if (letter.state === "waiting" && letter.trouble?.status === 401) useAccess.setState({ lost: true });
  if (letter.trouble?.code === "rate_limited") useLimit.setState(({ until }) => ({ until: Math.max(until, letter.trouble!.until) }));
  // What was seen here is not what stands: look anew before the user decides.
  if (letter.state === "refused" && letter.trouble?.status === 409) void reload(letter.conversationID);
}

/** Lets go of an accepted letter once the conversation shows what became of it. */
async function settled(letter: Letter): Promise<void> {
  void queryClient.invalidateQueries({ queryKey: ["conversations"] });
  await reload(letter.conversationID);
  show(letter.key, null);
}

const reload = (conversation: string): Promise<unknown> =>
  Promise.all(["conversation", "messages"].map((what) => again([what, conversation])));

/** Sends a message, or steers a turn: kept on this device first, then sent once. */
export function sendMessage(message: Sending): string {
  const me = account();
  if (me === null) throw new Error("nobody is signed in");
  const { fresh, ...rest } = message;
  const page = queryClient.getQueryData(conversationQuery(message.conversationID).queryKey);
  const opening = fresh ?? (page === undefined ? { profile: null } : undefined);
  const letter = {
    ...rest,
    key: crypto.randomUUID(),
    account: me,
    ...(opening === undefined || message.turn !== undefined ? {} : { fresh: opening }),
    at: later(),
    tried: null,
    patient: usePatience.getState().patient,
    state: "sending" as const,
    trouble: null,
    began: null,
    parked: null,
  };
  post({ ...letter, body: bodyOf(letter) });
  return letter.key;
}

let last = 0;
/** The time, but always later than before: it is the order of letters. */
const later = (): number => (last = Math.max(Date.now(), last + 1));

/** The letters of this tab. */
const own = new Set<string>();
/** Whether a message was sent from this tab; the others show it, too. */
export const sentHere = (key: string): boolean => own.has(key);

function post(letter: Letter): void {
  own.add(letter.key);
  show(letter.key, letter);
  void navigator.storage?.persist?.().catch(() => false);
  void delivery.take(letter);
}

/**
 * Sends a refused letter again, or a waiting one now. With changes it is another letter, which is sent in its place, and on top
 * of whatever stands then: who decides has seen what came in between.
 */
export function retryOutgoing(key: string, changes?: { busy: Busy }): void {
  const letter = useLetters.getState().list.find((one) => one.key === key);
  if (letter === undefined || letter.state === "sending" || letter.state === "accepted") return;
  if (changes === undefined && letter.state === "waiting") {
    between.postMessage({ key, letter }); // another tab may be the one that waits
    return wakes.forEach((wake) => wake(key));
  }
  if (changes === undefined && letter.trouble?.code !== "outcome_unknown") return change({ ...letter, state: "waiting", trouble: null });
  drop(key);
  const { turn, head, body: _, ...kept } = letter;
  const busy = changes?.busy ?? letter.busy;
  const target = busy === "steer" || busy === "interrupt" ? (turn ?? letter.trouble?.turn) : null;
  const next = {
    ...kept,
    busy,
    ...(target == null ? {} : { turn: target }),
    ...(changes !== undefined || head === undefined ? {} : { head }),
    key: crypto.randomUUID(),
    tried: null,
    state: "sending" as const,
    trouble: null,
  };
  post({ ...next, body: bodyOf(next) });
}

/** Lets a letter that came over a limit wait for its end, or lets it be. The choice holds for those to come. */
export function waitForLimit(key: string, patient: boolean): void {
  usePatience.setState({ patient });
  const letter = useLetters.getState().list.find((one) => one.key === key);
  if (letter !== undefined && letter.state !== "sending" && letter.state !== "accepted") change({ ...letter, patient, state: patient ? "waiting" : "refused" });
}

/** Keeps a decision of the user about a letter, and does what follows from it. */
function change(letter: Letter): void {
  void store.replace(letter).then(() => {
    show(letter.key, letter);
    between.postMessage({ key: letter.key, letter });
    wakes.forEach((wake) => wake(letter.key));
    return delivery.tend(laneOf(letter));
  });
}

/** Forgets a message that was not accepted; its text is given back. */
export function discardOutgoing(key: string): string {
  const letter = useLetters.getState().list.find((one) => one.key === key);
  drop(key);
  if (letter !== undefined) tell(letter, "taken back", true);
  return letter?.text ?? "";
}

function drop(key: string): void {
  show(key, null);
  void store.remove(key).then(() => {
    wakes.forEach((wake) => wake(key));
    between.postMessage({ key, letter: null });
  });
}

/** What was sent in a conversation and is not yet in its messages, in its order. What waits for its turn or steers is not among it. */
export function useOutgoing(conversationID: string): readonly Outgoing[] {
  const letters = useLetters(useShallow(({ list }) => list.filter((one) => one.conversationID === conversationID && one.turn === undefined && one.busy === "reject")));
  return useMemo(() => letters.map(({ began, trouble, ...letter }): Outgoing => ({ ...letter, turnID: began, problem: trouble })), [letters]);
}

/** Waits, but no longer than until the network is back, somebody signs in, or the letter was changed. */
function pause(ms: number, key: string): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      wakes.delete(wake);
      stopWatching();
      resolve();
    };
    const wake = (which: string | null) => (which === null || which === key) && end();
    const timer = Number.isFinite(ms) ? setTimeout(end, ms) : undefined;
    window.addEventListener("online", end);
    wakes.add(wake);
    const stopWatching = useAccess.subscribe(({ lost }, before) => before.lost && !lost && end());
  });
}

/** Asks the service which of its parts are down; nothing when it does not say. */
async function whatIsDown(): Promise<readonly string[]> {
  try {
    const answer = await send(new Request(new URL("/ready", location.origin), { cache: "no-store", signal: AbortSignal.timeout(5_000) }));
    const { checks } = (await answer.json()) as Schemas["Readiness"];
    return Object.entries(checks ?? {}).flatMap(([part, state]) => (state === "down" ? [part] : []));
  } catch {
    return [];
  }
}

/** Shows and delivers what an earlier page has left, once it is known who is signed in. */
async function begin(): Promise<void> {
  const me = account();
  if (me === null) return;
  const kept = (await store.all()).filter((letter) => letter.account === me);
  const known = useLetters.getState().list;
  useLetters.setState({ list: [...known, ...kept.filter((letter) => known.every((one) => one.key !== letter.key))].sort((a, b) => a.at - b.at), loaded: true });
  await delivery.resume();
}

let begunFor: string | null = null;
const beginOnce = () => {
  const me = account();
  if (me === begunFor) return;
  begunFor = me;
  void begin();
};
queryClient.getQueryCache().subscribe(beginOnce);
beginOnce();
