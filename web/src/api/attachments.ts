// Files that become part of the message that is being written. The drafts store them; this module connects the drafts with
// the code that adds files, and notes what this tab knows about them.
import { create } from "zustand";

export interface Attachment {
  /** The identifier of the file. */
  id: string;
  name: string;
}

interface Attachments {
  /** The names of files that this tab has added or displayed, by identifier. */
  names: Readonly<Record<string, string>>;
  /** The files that were found to be deleted. */
  gone: readonly string[];
  /** The conversations whose messages wait for uploads. */
  uploading: readonly string[];
}

export const useAttachments = create<Attachments>(() => ({ names: {}, gone: [], uploading: [] }));

type Receiver = (conversation: string, files: readonly string[]) => void;
let receive: Receiver = () => {};
/** Sets what stores the files that are added. */
export const onAttach = (receiver: Receiver): void => void (receive = receiver);

type Finder = (conversation: string) => Promise<string | null>;
let find: Finder = async (conversation) => conversation;
/** Sets what returns the conversation that the service has. */
export const onUpload = (finder: Finder): void => void (find = finder);

/**
 * Returns the conversation that the upload of a file names, which is for the next message of a conversation: null if the service
 * does not have it yet. A temporary one is created first, because the file ends with it. Throws a Refusal.
 */
export const conversationOfUpload = (conversation: string): Promise<string | null> => find(conversation);

/** Adds files to the message that is being written in a conversation. A name is empty if it is not known. */
export function attach(conversation: string, added: readonly Attachment[]): void {
  if (added.length === 0) return;
  noteNames(added);
  receive(
    conversation,
    added.map(({ id }) => id),
  );
}

/** Notes the names of files; an empty name is not known. */
export function noteNames(files: readonly Attachment[]): void {
  const named = Object.fromEntries(files.flatMap(({ id, name }) => (name === "" ? [] : [[id, name]])));
  useAttachments.setState(({ names }) => ({ names: { ...names, ...named } }));
}

/** Returns the files of a message with the names that are known. */
export const withNames = (files: readonly string[], { names }: Pick<Attachments, "names">): Attachment[] =>
  files.map((id) => ({ id, name: names[id] ?? "" }));

export const setUploading = (conversations: readonly string[]): void =>
  useAttachments.setState({ uploading: conversations });

export const setGone = (files: readonly string[]): void => useAttachments.setState({ gone: files });
