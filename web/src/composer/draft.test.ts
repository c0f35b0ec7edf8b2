import { describe, expect, test } from "vitest";
import { random } from "../turn/turn.fake";
import { emptyDraft, heard, isDirty, isDue, keepMine, restored, saved, saving, sent, settled, takeTheirs, typed, unsaved, type DraftState, type Kept } from "./draft";

const known = (content: string, version = 1): DraftState => heard(emptyDraft, { content, version });

describe("drafts", () => {
  test("what another device wrote appears where nothing was touched here", () => {
    const draft = heard(known("one", 1), { content: "one and two", version: 2 });
    expect(draft.text).toBe("one and two");
    expect(draft.theirs).toBeNull();
    expect(isDue(draft)).toBe(false);
  });

  test("what both devices changed is shown in both versions, and nothing is saved until the user chose", () => {
    const clash = heard(typed(known("one", 1), "one here"), { content: "one there", version: 2 });
    expect(clash).toMatchObject({ text: "one here", theirs: { content: "one there", version: 2 } });
    expect(isDue(clash)).toBe(false);
    expect(takeTheirs(clash)).toMatchObject({ text: "one there", theirs: null });
    expect(isDue(takeTheirs(clash))).toBe(false);
    const mine = keepMine(clash);
    expect(mine).toMatchObject({ text: "one here", base: { version: 2 }, theirs: null });
    expect(isDue(mine)).toBe(true);
  });

  test("one's own save that comes back by another way is no clash", () => {
    const writing = typed(saving(typed(known("", 1), "a")), "ab");
    const overtaken = heard(writing, { content: "a", version: 2 });
    expect(overtaken).toMatchObject({ text: "ab", theirs: null, base: { version: 2 } });
    expect(saved(overtaken, { content: "a", version: 2 })).toMatchObject({ saving: false, base: { content: "a", version: 2 } });
    const unanswered = unsaved(writing, null);
    expect(heard(unanswered, { content: "a", version: 2 })).toMatchObject({ text: "ab", theirs: null });
    const refusedRepeat = unsaved(saving(unanswered), { content: "a", version: 2 });
    expect(refusedRepeat.theirs).toBeNull();
    expect(isDue(refusedRepeat)).toBe(true);
  });

  test("a page that was reloaded goes on with what this device had kept", () => {
    const copy = { text: "typed offline", base: { content: "old", version: 4 }, tried: ["typed"] };
    const draft = restored(emptyDraft, copy);
    expect(heard(draft, { content: "typed", version: 5 })).toMatchObject({ text: "typed offline", theirs: null });
    expect(heard(draft, { content: "old", version: 4 })).toMatchObject({ text: "typed offline", theirs: null });
    expect(heard(draft, { content: "from the phone", version: 6 }).theirs).toEqual({ content: "from the phone", version: 6 });
    expect(restored(typed(emptyDraft, "newer"), copy).text).toBe("newer");
  });

  test("what was typed before the service's draft was known is not lost to it", () => {
    expect(heard(typed(emptyDraft, "quick"), { content: "", version: 3 })).toMatchObject({ text: "quick", theirs: null });
    expect(heard(typed(emptyDraft, "quick"), { content: "older", version: 3 })).toMatchObject({ text: "quick", theirs: { content: "older" } });
  });

  test("a sent draft is cleared on the service only once the message was accepted", () => {
    const gone = sent(known("hello", 1), "hello");
    expect(gone.text).toBe("");
    expect(isDirty(gone)).toBe(true);
    expect(isDue(gone)).toBe(false);
    expect(isDue(settled(gone, "hello"))).toBe(true);
    expect(isDue(typed(gone, "next"))).toBe(true);
  });

  test("a draft that went out from here does not come back into the field, also not after a reload", () => {
    const reloaded: DraftState = { ...emptyDraft, sent: ["hello"] };
    const draft = heard(reloaded, { content: "hello ", version: 2 });
    expect(draft.text).toBe("");
    expect(isDue(draft)).toBe(false);
    expect(isDue(settled(draft, "hello"))).toBe(true);
  });

  test("an answer that is older than what is known changes nothing", () => {
    const draft = known("new", 7);
    expect(heard(draft, { content: "old", version: 6 })).toBe(draft);
    expect(saved(saving(typed(draft, "x")), { content: "old", version: 6 }).base?.version).toBe(7);
  });

  test("two devices that write at random lose no text: it stands in a field, on the service, or in a clash that is shown", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const next = random(seed);
      const service: Kept = { content: "", version: 1 };
      const devices: DraftState[] = [known("", 1), known("", 1)];
      const typedBy = ["", ""];
      for (let step = 0; step < 30; step++) {
        const at = next(2);
        const before = devices[at]!;
        if (next(3) === 0 && before.theirs === null) {
          devices[at] = typed(before, `${before.text}${at}${step} `);
          typedBy[at] = `${at}${step}`;
        } else if (isDue(before)) {
          devices[at] = put(saving(before), service, next(4) === 0);
        } else {
          devices[at] = heard(before, { ...service });
        }
        for (const which of [0, 1]) {
          const kept = [...devices.flatMap((device) => [device.text, device.theirs?.content ?? ""]), service.content].some((text) => text.includes(typedBy[which]!));
          expect(kept, `seed ${seed}, step ${step}`).toBe(true);
        }
      }
    }
  });
});

/** The service takes a draft under its version; lost: the device does not hear the answer. */
function put(draft: DraftState, service: Kept, lost: boolean): DraftState {
  if (draft.base!.version !== service.version) return unsaved(draft, lost ? null : { ...service });
  service.content = draft.text;
  service.version += 1;
  return lost ? unsaved(draft, null) : saved(draft, { ...service });
}
