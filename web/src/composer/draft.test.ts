import { describe, expect, test } from "vitest";
import { random } from "../turn/turn.fake";
import {
  emptyDraft,
  mergeServiceDraft,
  isDirty,
  isDue,
  keepMine,
  withStoredCopy,
  saveSucceeded,
  saveStarted,
  messageSent,
  messageSettled,
  takeTheirs,
  withText,
  saveFailed,
  type DraftState,
  type ServiceDraft,
} from "./draft";

const known = (content: string, version = 1): DraftState => mergeServiceDraft(emptyDraft, { content, version });

describe("drafts", () => {
  test("a draft from another device appears if the text here is unchanged", () => {
    const draft = mergeServiceDraft(known("one", 1), { content: "one and two", version: 2 });
    expect(draft.text).toBe("one and two");
    expect(draft.conflict).toBeNull();
    expect(isDue(draft)).toBe(false);
  });

  test("if both devices changed a draft, both versions are shown, and nothing is saved until the user chooses", () => {
    const conflicted = mergeServiceDraft(withText(known("one", 1), "one here"), { content: "one there", version: 2 });
    expect(conflicted).toMatchObject({ text: "one here", conflict: { content: "one there", version: 2 } });
    expect(isDue(conflicted)).toBe(false);
    expect(takeTheirs(conflicted)).toMatchObject({ text: "one there", conflict: null });
    expect(isDue(takeTheirs(conflicted))).toBe(false);
    const mine = keepMine(conflicted);
    expect(mine).toMatchObject({ text: "one here", base: { version: 2 }, conflict: null });
    expect(isDue(mine)).toBe(true);
  });

  test("this device's own save that arrives by another path is not a conflict", () => {
    const writing = withText(saveStarted(withText(known("", 1), "a")), "ab");
    const overtaken = mergeServiceDraft(writing, { content: "a", version: 2 });
    expect(overtaken).toMatchObject({ text: "ab", conflict: null, base: { version: 2 } });
    expect(saveSucceeded(overtaken, { content: "a", version: 2 })).toMatchObject({
      saving: false,
      base: { content: "a", version: 2 },
    });
    const unanswered = saveFailed(writing, null);
    expect(mergeServiceDraft(unanswered, { content: "a", version: 2 })).toMatchObject({ text: "ab", conflict: null });
    const refusedRepeat = saveFailed(saveStarted(unanswered), { content: "a", version: 2 });
    expect(refusedRepeat.conflict).toBeNull();
    expect(isDue(refusedRepeat)).toBe(true);
  });

  test("a reloaded page continues with the copy stored on this device", () => {
    const copy = { text: "typed offline", base: { content: "old", version: 4 }, savedTexts: ["typed"] };
    const draft = withStoredCopy(emptyDraft, copy);
    expect(mergeServiceDraft(draft, { content: "typed", version: 5 })).toMatchObject({
      text: "typed offline",
      conflict: null,
    });
    expect(mergeServiceDraft(draft, { content: "old", version: 4 })).toMatchObject({
      text: "typed offline",
      conflict: null,
    });
    expect(mergeServiceDraft(draft, { content: "from the phone", version: 6 }).conflict).toEqual({
      content: "from the phone",
      version: 6,
    });
    expect(withStoredCopy(withText(emptyDraft, "newer"), copy).text).toBe("newer");
  });

  test("text typed before the service's draft is known is not overwritten by it", () => {
    expect(mergeServiceDraft(withText(emptyDraft, "quick"), { content: "", version: 3 })).toMatchObject({
      text: "quick",
      conflict: null,
    });
    expect(mergeServiceDraft(withText(emptyDraft, "quick"), { content: "older", version: 3 })).toMatchObject({
      text: "quick",
      conflict: { content: "older" },
    });
  });

  test("a sent draft is cleared on the service only once the message was accepted", () => {
    const sent = messageSent(known("hello", 1), "hello");
    expect(sent.text).toBe("");
    expect(isDirty(sent)).toBe(true);
    expect(isDue(sent)).toBe(false);
    expect(isDue(messageSettled(sent, "hello"))).toBe(true);
    expect(isDue(withText(sent, "next"))).toBe(true);
  });

  test("a draft that was sent from here does not return to the field, even after a reload", () => {
    const reloaded: DraftState = { ...emptyDraft, sent: ["hello"] };
    const draft = mergeServiceDraft(reloaded, { content: "hello ", version: 2 });
    expect(draft.text).toBe("");
    expect(isDue(draft)).toBe(false);
    expect(isDue(messageSettled(draft, "hello"))).toBe(true);
  });

  test("a response that is older than the known version changes nothing", () => {
    const draft = known("new", 7);
    expect(mergeServiceDraft(draft, { content: "old", version: 6 })).toBe(draft);
    expect(saveSucceeded(saveStarted(withText(draft, "x")), { content: "old", version: 6 }).base?.version).toBe(7);
  });

  test("random edits on two devices lose no text: it is in a field, on the service, or in a displayed conflict", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const next = random(seed);
      const service: ServiceDraft = { content: "", version: 1 };
      const devices: DraftState[] = [known("", 1), known("", 1)];
      const typedBy = ["", ""];
      for (let step = 0; step < 30; step++) {
        const at = next(2);
        const before = devices[at]!;
        if (next(3) === 0 && before.conflict === null) {
          devices[at] = withText(before, `${before.text}${at}${step} `);
          typedBy[at] = `${at}${step}`;
        } else if (isDue(before)) {
          devices[at] = put(saveStarted(before), service, next(4) === 0);
        } else {
          devices[at] = mergeServiceDraft(before, { ...service });
        }
        for (const which of [0, 1]) {
          const found = [
            ...devices.flatMap((device) => [device.text, device.conflict?.content ?? ""]),
            service.content,
          ].some((text) => text.includes(typedBy[which]!));
          expect(found, `seed ${seed}, step ${step}`).toBe(true);
        }
      }
    }
  });
});

/** Stores a draft on the service if its version is current. lost: the device does not receive the response. */
function put(draft: DraftState, service: ServiceDraft, lost: boolean): DraftState {
  if (draft.base!.version !== service.version) return saveFailed(draft, lost ? null : { ...service });
  service.content = draft.text;
  service.version += 1;
  return lost ? saveFailed(draft, null) : saveSucceeded(draft, { ...service });
}
