// The files of the messages that are being written in this tab, by conversation. They survive a reload of the page.
import { create } from "zustand";

export interface Attachment {
  /** The identifier of the file. */
  id: string;
  name: string;
}

interface Attachments {
  files: Readonly<Record<string, readonly Attachment[]>>;
  /** The conversations whose messages wait for uploads. */
  uploading: readonly string[];
}

/** The largest number of files of a message. */
export const maxAttachments = 20;

const storageKey = "turnstone-attachments";

export const useAttachments = create<Attachments>(() => ({
  files: JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") as Attachments["files"],
  uploading: [],
}));

const none: readonly Attachment[] = [];

export const attachmentsOf = ({ files }: Attachments, conversation: string): readonly Attachment[] =>
  files[conversation] ?? none;

function put(conversation: string, list: readonly Attachment[]): void {
  const { [conversation]: _, ...others } = useAttachments.getState().files;
  const files = list.length === 0 ? others : { ...others, [conversation]: list };
  useAttachments.setState({ files });
  sessionStorage.setItem(storageKey, JSON.stringify(files));
}

/** Adds files to the message that is being written in a conversation. */
export function attach(conversation: string, added: readonly Attachment[]): void {
  const before = attachmentsOf(useAttachments.getState(), conversation);
  put(conversation, [...before, ...added.filter(({ id }) => before.every((one) => one.id !== id))]);
}

/** Removes a file from the message; null: all. */
export function detach(conversation: string, id: string | null): void {
  const before = attachmentsOf(useAttachments.getState(), conversation);
  put(conversation, id === null ? none : before.filter((one) => one.id !== id));
}

export const setUploading = (conversations: readonly string[]): void =>
  useAttachments.setState({ uploading: conversations });
