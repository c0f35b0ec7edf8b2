import { describe, expect, test } from "vitest";
import { outdatedBy, rowOutdatedBy } from "./feed-changes";

const nothing = { draft: () => undefined, settings: () => undefined };
const at = "2026-01-01T00:00:00.000Z";
const item = (type: string, version?: number) => ({
  type,
  id: "id",
  conversation_id: "conv_1",
  at,
  ...(version === undefined ? {} : { version }),
});

describe("what an item of the feed makes outdated", () => {
  test("the list, the conversation and the lengths of its branches, if its turn changed", () => {
    expect(outdatedBy(item("turn.changed"), nothing)).toEqual([
      ["conversations"],
      ["conversation", "conv_1"],
      ["branches", "conv_1"],
    ]);
  });

  test("the branches and the numbers of versions in messages, if a branch was created or renamed", () => {
    expect(outdatedBy(item("branch.changed"), nothing)).toEqual([
      ["conversation", "conv_1"],
      ["branches", "conv_1"],
      ["messages", "conv_1"],
    ]);
  });

  test("every list that may have a conversation, if it changed", () => {
    for (const type of ["conversation.changed", "conversation.deleted"])
      expect(outdatedBy(item(type), nothing)).toEqual([
        ["conversations"],
        ["conversation", "conv_1"],
        ["archive"],
        ["project"],
      ]);
  });

  test("the requests for approval and their conversation, if one was made or resolved", () => {
    expect(outdatedBy(item("approval.changed"), nothing)).toEqual([["approvals"], ["conversation", "conv_1"]]);
  });

  test("the tasks of the conversation, which has a message more at their end, if the state of one changed", () => {
    expect(outdatedBy(item("task.changed"), nothing)).toEqual([
      ["research", "conv_1"],
      ["conversations"],
      ["conversation", "conv_1"],
    ]);
  });

  test("the artifacts of the conversation, if one has a new version", () => {
    expect(outdatedBy(item("artifact.changed"), nothing)).toEqual([
      ["artifacts", "conv_1"],
      ["artifact", "id"],
    ]);
  });

  test("the messages, if the feedback on one changed", () => {
    expect(outdatedBy(item("feedback.changed"), nothing)).toEqual([["messages", "conv_1"]]);
  });

  test("the lists of shares, if one was created or revoked", () => {
    for (const type of ["share.changed", "share.deleted"])
      expect(outdatedBy(item(type), nothing)).toEqual([["shares"]]);
  });

  test("the lists of projects and of conversations, if a project changed", () => {
    for (const type of ["project.changed", "project.deleted"])
      expect(outdatedBy(item(type), nothing)).toEqual([
        ["projects"],
        ["project", "id"],
        ["conversations"],
        ["prompts"],
      ]);
  });

  test("the lists of files, the projects and the shares, if a file changed; the files, if one was read", () => {
    for (const type of ["file.changed", "file.deleted"])
      expect(outdatedBy(item(type), nothing)).toEqual([["files"], ["project"], ["shares"]]);
    expect(outdatedBy(item("file_text.changed"), nothing)).toEqual([["files"]]);
    expect(outdatedBy(item("upload.changed"), nothing)).toEqual([]);
  });

  test("the session, if the name or the address of the account changed", () => {
    expect(outdatedBy(item("account.changed"), nothing)).toEqual([["session"]]);
  });

  test("the instructions of the account, if they changed", () => {
    expect(outdatedBy(item("instructions.changed"), nothing)).toEqual([["instructions"]]);
  });
  test("the prompts, if one changed", () => {
    expect(outdatedBy(item("prompt.deleted"), nothing)).toEqual([["prompts"]]);
  });
  test("the consents of the account, if one changed", () => {
    expect(outdatedBy(item("consent.changed"), nothing)).toEqual([["consents"]]);
  });

  test("everything, if items are missing", () => {
    for (const type of ["feed.started", "feed.reset"]) expect(outdatedBy({ type, at }, nothing)).toEqual([[]]);
  });

  test("nothing, if this tab has that version already", () => {
    const known = { draft: () => 4, settings: () => 2 };
    expect(outdatedBy(item("draft.changed", 4), known)).toEqual([]);
    expect(outdatedBy(item("draft.changed", 5), known)).toEqual([["conversation", "conv_1"]]);
    expect(outdatedBy(item("settings.changed", 2), known)).toEqual([]);
    expect(outdatedBy(item("settings.changed", 3), known)).toEqual([["settings"]]);
  });

  test("nothing, if the kind is not known", () => {
    expect(outdatedBy(item("dream.changed"), nothing)).toEqual([]);
  });
});

test("a row of the list is outdated if its conversation has a new version, or a draft that this tab does not have", () => {
  expect(rowOutdatedBy(item("conversation.changed", 3), nothing)).toEqual(["id", 3]);
  expect(rowOutdatedBy(item("conversation.deleted"), nothing)).toEqual(["id", null]);
  expect(rowOutdatedBy(item("draft.changed", 5), nothing)).toEqual(["conv_1", Infinity]);
  expect(rowOutdatedBy(item("draft.changed", 5), { ...nothing, draft: () => 4 })).toEqual(["conv_1", Infinity]);
  expect(rowOutdatedBy(item("draft.changed", 5), { ...nothing, draft: () => 5 })).toBeUndefined();
  expect(rowOutdatedBy(item("turn.changed", 5), nothing)).toBeUndefined();
});
