// What the items of the account's feed make outdated in the cache of server state. Pure.
import type { Schemas } from "./client";

type FeedItem = Schemas["FeedItem"];

/** The versions that this tab has; undefined: not loaded. */
export interface KnownVersions {
  draft(conversation: string): number | undefined;
  settings(): number | undefined;
}

/**
 * Returns the conversation whose row in the list an item makes outdated, with its new version; null: it was deleted. The list says
 * which conversations have a draft, which is no part of their versions.
 */
export function rowOutdatedBy(item: FeedItem, known: KnownVersions): readonly [string, number | null] | undefined {
  const { type, id, version, conversation_id: of } = item;
  if (type === "conversation.deleted" && id !== undefined) return [id, null];
  if (type === "conversation.changed" && id !== undefined) return [id, version ?? 0];
  const draft = of === undefined ? undefined : known.draft(of);
  if (type !== "draft.changed" || of === undefined || (draft !== undefined && draft >= (version ?? Infinity)))
    return undefined;
  return [of, Infinity];
}

/** Returns the keys of the queries that an item makes outdated; an empty key stands for all queries. */
export function outdatedBy(item: FeedItem, known: KnownVersions): readonly (readonly string[])[] {
  const of = item.conversation_id ?? "";
  const isKnown = (version: number | undefined) => version !== undefined && version >= (item.version ?? Infinity);
  switch (item.type.split(".")[0]) {
    case "feed": // feed.started and feed.reset: anything may have changed before
      return [[]];
    case "conversation": // it may have moved between lists
      return [["conversations"], ["conversation", of], ["archive"], ["project"]];
    case "turn": // its messages are on a branch
      return [["conversations"], ["conversation", of], ["branches", of]];
    case "draft":
      return isKnown(known.draft(of)) ? [] : [["conversation", of]];
    case "queue":
    case "follow_up":
      return [["conversation", of]];
    case "branch": // messages show how many siblings they have
      return [
        ["conversation", of],
        ["branches", of],
        ["messages", of],
      ];
    case "approval": // the list of the account, and the state of the live turn
      return [["approvals"], ["conversation", of]];
    case "task": // its report is a message
      return [["research", of], ["conversations"], ["conversation", of]];
    case "artifact":
      return [
        ["artifacts", of],
        ["artifact", item.id ?? ""],
      ];
    case "feedback":
      return [["messages", of]];
    case "share":
      return [["shares"]];
    case "project": // a deleted project hides its conversations and its prompts
      return [["projects"], ["project", item.id ?? ""], ["conversations"], ["prompts"]];
    case "file": // the lists of the library and of projects, how many files a project has, and the files of shares
      return [["files"], ["project"], ["shares"]];
    case "file_text": // a picture may have a thumbnail now
      return [["files"]];
    case "upload": // the tab that sends it follows it; what becomes of it is a file, which has items of its own
      return [];
    case "account": // its name and its address are in the session
      return [["session"]];
    case "settings":
      return isKnown(known.settings()) ? [] : [["settings"]];
    case "instructions":
      return [["instructions"]];
    case "prompt":
      return [["prompts"]];
    case "consent":
      return [["consents"]];
    default: // a kind that this version does not know
      return [];
  }
}
