import { describe, expect, test } from "vitest";
import { random } from "../../turn/turn.fake";
import {
  emptyDraft,
  mergeServiceDraft,
  isDirty,
  isDue,
  withStoredCopy,
  saveSucceeded,
  saveStarted,
  messageSent,
  messageSettled,
  withChoice,
  withFiles,
  withoutFile,
  withText,
  saveFailed,
  type DraftState,
  type ServiceDraft,
} from "./draft";

const kept = (text: string, version: number, files: readonly string[] = []): ServiceDraft => ({ text, files, version });
const known = (text: string, version = 1, files: readonly string[] = []): DraftState =>
  mergeServiceDraft(emptyDraft, kept(text, version, files));

const hello = { text: "hello", files: [] };

describe("drafts", () => {
  test("a draft from another device appears if the text here is unchanged", () => {
    const draft = mergeServiceDraft(known("one", 1), kept("one and two", 2));
    expect(draft.text).toBe("one and two");
    expect(draft.conflict).toBeNull();
    expect(isDue(draft)).toBe(false);
  });

  test("if both devices changed a draft, both versions are shown, and nothing is saved until the user chooses", () => {
    const conflicted = mergeServiceDraft(withText(known("one", 1), "one here"), kept("one there", 2));
    expect(conflicted).toMatchObject({ text: "one here", conflict: kept("one there", 2) });
    expect(isDue(conflicted)).toBe(false);
    expect(withChoice(conflicted, "theirs")).toMatchObject({ text: "one there", conflict: null });
    expect(isDue(withChoice(conflicted, "theirs"))).toBe(false);
    const mine = withChoice(conflicted, "mine");
    expect(mine).toMatchObject({ text: "one here", base: { version: 2 }, conflict: null });
    expect(isDue(mine)).toBe(true);
  });

  test("this device's own save that arrives by another path is not a conflict", () => {
    const writing = withText(saveStarted(withText(known("", 1), "a")), "ab");
    const overtaken = mergeServiceDraft(writing, kept("a", 2));
    expect(overtaken).toMatchObject({ text: "ab", conflict: null, base: { version: 2 } });
    expect(saveSucceeded(overtaken, kept("a", 2))).toMatchObject({
      saving: false,
      base: kept("a", 2),
    });
    const unanswered = saveFailed(writing, null);
    expect(mergeServiceDraft(unanswered, kept("a", 2))).toMatchObject({ text: "ab", conflict: null });
    const refusedRepeat = saveFailed(saveStarted(unanswered), kept("a", 2));
    expect(refusedRepeat.conflict).toBeNull();
    expect(isDue(refusedRepeat)).toBe(true);
  });

  test("a reloaded page continues with the copy stored on this device", () => {
    const copy = { text: "typed offline", files: [], base: kept("old", 4), saves: [{ text: "typed", files: [] }] };
    const draft = withStoredCopy(emptyDraft, copy);
    expect(mergeServiceDraft(draft, kept("typed", 5))).toMatchObject({
      text: "typed offline",
      conflict: null,
    });
    expect(mergeServiceDraft(draft, kept("old", 4))).toMatchObject({
      text: "typed offline",
      conflict: null,
    });
    expect(mergeServiceDraft(draft, kept("from the phone", 6)).conflict).toEqual(kept("from the phone", 6));
    expect(withStoredCopy(withText(emptyDraft, "newer"), copy).text).toBe("newer");
  });

  test("text typed before the service's draft is known is not overwritten by it", () => {
    expect(mergeServiceDraft(withText(emptyDraft, "quick"), kept("", 3))).toMatchObject({
      text: "quick",
      conflict: null,
    });
    expect(mergeServiceDraft(withText(emptyDraft, "quick"), kept("older", 3))).toMatchObject({
      text: "quick",
      conflict: { text: "older" },
    });
  });

  test("a sent draft is cleared on the service only once the message was accepted", () => {
    const sent = messageSent(known("hello", 1), hello);
    expect(sent.text).toBe("");
    expect(isDirty(sent)).toBe(true);
    expect(isDue(sent)).toBe(false);
    expect(isDue(messageSettled(sent, hello))).toBe(true);
    expect(isDue(withText(sent, "next"))).toBe(true);
  });

  test("a draft that was sent from here does not return to the field, even after a reload", () => {
    const reloaded: DraftState = { ...emptyDraft, sent: [hello] };
    const draft = mergeServiceDraft(reloaded, kept("hello ", 2));
    expect(draft.text).toBe("");
    expect(isDue(draft)).toBe(false);
    expect(isDue(messageSettled(draft, hello))).toBe(true);
  });

  test("a response that is older than the known version changes nothing", () => {
    const draft = known("new", 7);
    expect(mergeServiceDraft(draft, kept("old", 6))).toBe(draft);
    expect(saveSucceeded(saveStarted(withText(draft, "x")), kept("old", 6)).base?.version).toBe(7);
  });

  test("a file from another device appears, next to a text that was typed here", () => {
    const draft = mergeServiceDraft(withText(known("", 1), "typed here"), kept("", 2, ["a"]));
    expect(draft).toMatchObject({ text: "typed here", files: ["a"], conflict: null });
    expect(isDue(draft)).toBe(true);
  });

  test("files that two devices add and remove are merged, and only the texts can conflict", () => {
    const here = withoutFile(withFiles(known("one", 1, ["a", "b"]), ["here"]), "a");
    expect(mergeServiceDraft(here, kept("one", 2, ["a", "there"])).files).toEqual(["there", "here"]);
    const conflicted = mergeServiceDraft(withText(here, "one here"), kept("one there", 2, ["a", "b", "there"]));
    expect(conflicted).toMatchObject({ text: "one here", files: ["b", "here"], conflict: { text: "one there" } });
    for (const whose of ["mine", "theirs"] as const)
      expect(withChoice(conflicted, whose).files).toEqual(["b", "there", "here"]);
  });

  test("a file that was removed here does not return with this device's own save", () => {
    const saving = saveStarted(withFiles(known("", 1), ["a"]));
    const removed = withoutFile(saving, "a");
    expect(mergeServiceDraft(removed, kept("", 2, ["a"]))).toMatchObject({ files: [], conflict: null });
    expect(mergeServiceDraft(saveFailed(removed, null), kept("", 2, ["a"])).files).toEqual([]);
  });

  test("a draft that another device has cleared is cleared here, even if this device has once saved an empty one", () => {
    const cleared = saveSucceeded(saveStarted(withText(known("x", 1), "")), kept("", 2));
    const synced = mergeServiceDraft(cleared, kept("next", 3, ["a"]));
    expect(mergeServiceDraft(synced, kept("", 4))).toMatchObject({ text: "", files: [] });
  });

  test("the files of a sent message do not return, and files that were added since then are kept", () => {
    const message = { text: "", files: ["a"] };
    const sent = messageSent(known("", 1, ["a"]), message);
    expect(sent.files).toEqual([]);
    expect(isDue(sent)).toBe(false);
    expect(isDue(messageSettled(sent, message))).toBe(true);
    expect(mergeServiceDraft(sent, kept("", 2, ["a", "b"])).files).toEqual(["b"]);
    const reloaded = mergeServiceDraft({ ...emptyDraft, sent: [message] }, kept("", 1, ["a"]));
    expect(reloaded.files).toEqual([]);
    expect(isDue(withFiles(reloaded, ["b"]))).toBe(true);
  });

  test("files that were added before the service's draft is known are added to it", () => {
    expect(mergeServiceDraft(withFiles(emptyDraft, ["b"]), kept("old", 3, ["a"]))).toMatchObject({
      text: "old",
      files: ["a", "b"],
    });
  });

  test("a draft never has more files than the service stores, and a file is in it once", () => {
    const many = Array.from({ length: 60 }, (_, n) => `file_${n}`);
    expect(withFiles(withFiles(emptyDraft, many), many).files).toEqual(many.slice(0, 50));
    expect(mergeServiceDraft(withFiles(emptyDraft, many), kept("", 1, ["other"])).files).toHaveLength(50);
  });

  test("random edits on two devices lose nothing: it is in a composer, on the service, or in a displayed conflict", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const next = random(seed);
      const service = { text: "", files: [] as readonly string[], version: 1 };
      const devices: DraftState[] = [known("", 1), known("", 1)];
      const typedBy = ["", ""];
      const added = new Set<string>();
      for (let step = 0; step < 30; step++) {
        const at = next(2);
        const before = devices[at]!;
        const action = next(6);
        if (action < 2 && before.conflict === null) {
          devices[at] = withText(before, `${before.text}${at}${step} `);
          typedBy[at] = `${at}${step}`;
        } else if (action === 2) {
          devices[at] = withFiles(before, [`file_${step}`]);
          added.add(`file_${step}`);
        } else if (action === 3 && before.files.length > 0) {
          const removed = before.files[next(before.files.length)]!;
          devices[at] = withoutFile(before, removed);
          added.delete(removed);
        } else if (isDue(before)) {
          devices[at] = put(saveStarted(before), service, next(4) === 0);
        } else {
          devices[at] = mergeServiceDraft(before, { ...service });
        }
        for (const which of [0, 1]) {
          const found = [...devices.flatMap((device) => [device.text, device.conflict?.text ?? ""]), service.text].some(
            (text) => text.includes(typedBy[which]!),
          );
          expect(found, `seed ${seed}, step ${step}`).toBe(true);
        }
        const files = [...devices.flatMap((device) => [...device.files]), ...service.files];
        expect(files, `seed ${seed}, step ${step}`).toEqual(expect.arrayContaining([...added]));
      }
      // Without further edits, both devices get the same files.
      for (let round = 0; round < 4; round++) {
        for (const at of [0, 1]) {
          const resolved = withChoice(mergeServiceDraft(devices[at]!, { ...service }), "mine");
          devices[at] = isDue(resolved) ? put(saveStarted(resolved), service, false) : resolved;
        }
      }
      expect(devices[0]!.files, `seed ${seed}`).toEqual(devices[1]!.files);
      expect(service.files, `seed ${seed}`).toEqual(devices[0]!.files);
      expect(service.files, `seed ${seed}`).toEqual(expect.arrayContaining([...added]));
    }
  });
});

/** Stores a draft on the service if its version is current. lost: the device does not receive the response. */
function put(draft: DraftState, service: ServiceDraft, lost: boolean): DraftState {
  if (draft.base!.version !== service.version) return saveFailed(draft, lost ? null : { ...service });
  service.text = draft.text;
  service.files = draft.files;
  service.version += 1;
  return lost ? saveFailed(draft, null) : saveSucceeded(draft, { ...service });
}
