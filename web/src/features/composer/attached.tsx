// The files of the message that is being written, and the uploads that will become such files. While it is displayed, files
// can be dropped anywhere on the page.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { noteNames, setGone, useAttachments } from "../../api/attachments";
import { send, type Schemas } from "../../api/client";
import { useOutbox, type OutboxMessage } from "../../api/outbox";
import { readRefusal } from "../../api/problem";
import { viewFile } from "../../controls/viewed-file";
import { contentPath, preparedQuery, statesQuery, type StoredFile } from "../../api/files";
import { maxAttachments, maxFileStates } from "../../generated/limits";
import { AttachedNotes, DropTarget, isOpen, type QueuedUpload, UploadList, uploads, useUploads } from "../files";
import { IconButton } from "../../controls/button";
import { FilePicture } from "../../controls/file-picture";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";
import { focusComposer } from "./composer-requests";
import { drafts } from "./page-drafts";
import { DeletedNotice } from "./deleted-notice";
import type { Chat } from "./use-chat";
import { isPasted, pastedFile } from "./pasted-text";

type Announce = (left: number) => void;
/** Reports that files are left out of a message that has as many as it may have. */
let announceLeftOut: Announce = () => {};

/**
 * Uploads files for the next message of a conversation: the first ones, as many as it may have. A pasted text becomes a
 * file, or stays a text if the message can have no other file.
 */
export function uploadForMessage(conversation: string, added: readonly File[] | string): void {
  const files = typeof added === "string" ? [pastedFile(added)] : added;
  const open = uploads.state.getState().list.filter((one) => one.to.conversation === conversation && isOpen(one));
  const attached = drafts.state.getState().byID[conversation]?.files.length ?? 0;
  const room = Math.max(0, maxAttachments - attached - open.length);
  if (typeof added === "string" && room === 0) return drafts.restoreText(conversation, added);
  const taken = files.slice(0, room);
  uploads.add(taken, { project: null, conversation });
  if (taken.length < files.length) announceLeftOut(files.length - taken.length);
}

interface AttachedProps {
  conversation: string;
  /** The identifiers of the files. */
  files: readonly string[];
  /** The chat if its conversation was deleted elsewhere. */
  deleted: Chat | null;
  /** Whether the message could be sent if the conversation still existed. */
  canSend: boolean;
  /** Whether the service has the conversation. */
  isStored: boolean;
  /** Whether files that are dropped on the page become files of the message. */
  takesDrops: boolean;
  /** The id of the element that explains what the message waits for, and what is not sent with it. */
  noteID: string;
}

export function Attached({ conversation, files, deleted, canSend, isStored, takesDrops, noteID }: AttachedProps) {
  const t = useMessages(writingMessages);
  const names = useAttachments((known) => known.names);
  const states = useStates(files);
  const gone = files.filter((id) => states.get(id)?.state === "deleted" || states.get(id)?.state === "missing");
  const goneList = gone.join();
  useEffect(() => setGone(goneList.split(",")), [goneList]);
  const nameOf = (id: string) =>
    names[id] ?? t(gone.includes(id) ? "transcript.file.missing" : "transcript.file.loading");
  useEffect(() => {
    announceLeftOut = (count) =>
      toast(t("writing.files.left_out", { count, most: maxAttachments }), { kind: "problem" });
  }, [t]);
  useEffect(() => clearWhenSent(conversation), [conversation]);
  const toText = async (id: string) => {
    try {
      const text = await textOfFile(id);
      drafts.detach(conversation, id);
      drafts.restoreText(conversation, text);
      focusComposer();
    } catch {
      toast(t("writing.pasted.failed"), { kind: "problem" });
    }
  };
  const list = useUploads((uploads) => uploads.list);
  const ofMessage = list.filter(({ to }) => to.conversation === conversation);
  return (
    <div
      className={`flex flex-col gap-2 px-3 ${files.length > 0 || ofMessage.length > 0 || deleted !== null ? "pt-3" : ""}`}
    >
      {deleted !== null && <DeletedNotice chat={deleted} canSend={canSend} />}
      {takesDrops && (
        <DropTarget onFiles={(files) => uploadForMessage(conversation, [...files])} text={t("composer.drop")} />
      )}
      {files.length > 0 && (
        <ul
          aria-label={t("composer.files")}
          className="flex max-h-32 flex-wrap gap-1.5 overflow-y-auto pointer-coarse:max-h-40"
        >
          {files.map((id) => (
            <AttachedFile
              key={id}
              name={nameOf(id)}
              gone={gone.includes(id)}
              file={states.get(id)?.file}
              named={names[id] !== undefined}
              onText={isPasted(nameOf(id)) ? () => void toText(id) : undefined}
              onView={() => viewFile({ id, name: nameOf(id) })}
              onRemove={() => {
                focusComposer(); // the pressed button is removed
                drafts.detach(conversation, id);
              }}
            />
          ))}
        </ul>
      )}
      {isStored && files.length > 0 && files.length <= maxAttachments && (
        <PicturesNote
          conversation={conversation}
          files={files}
          areRead={files.some((id) => states.get(id)?.file?.text_state !== "pending")}
          pictures={files.filter((id) => {
            const file = states.get(id)?.file;
            return file?.kind === "image" && file.text_state !== "pending";
          })}
        />
      )}
      {files.length > maxAttachments && (
        <p role="alert" className="text-sm text-danger">
          {t("composer.too_many_files", { most: maxAttachments })}
        </p>
      )}
      {gone.length > 0 && (
        <p role="alert" className="text-sm text-danger">
          {t("composer.file.gone.hint", { count: gone.length })}
        </p>
      )}
      <UploadList of={{ conversation }} />
      <UploadNote id={noteID} uploads={ofMessage} />
    </div>
  );
}

/** Removes the files that were refused for a message once that message is sent. Returns what ends that. */
const clearWhenSent = (conversation: string): (() => void) =>
  useOutbox.subscribe(({ list }, before) => {
    const isNew = ({ key }: OutboxMessage) => before.list.every((one) => one.key !== key);
    if (list.some((one) => one.conversationID === conversation && one.branch === undefined && isNew(one)))
      uploads.clearStopped(conversation);
  });

/** Returns the text of a file. Throws if it cannot be read. */
async function textOfFile(id: string): Promise<string> {
  const response = await send(new Request(new URL(contentPath({ file_id: id }), location.origin)));
  if (!response.ok) throw await readRefusal(response);
  return response.text();
}

/** Explains what the message waits for, and which files it is sent without. */
function UploadNote({ id, uploads }: { id: string; uploads: readonly QueuedUpload[] }) {
  const { intl } = useLocalization();
  const t = useMessages(writingMessages);
  const open = uploads.filter(isOpen);
  const failed = uploads.filter((upload) => !isOpen(upload)).map(({ name }) => name);
  return (
    <div id={id} className="flex flex-col gap-1 text-xs text-soft empty:hidden">
      {open.length > 0 && <p>{t("composer.uploading", { count: open.length })}</p>}
      {failed.length > 0 && (
        <p className="wrap-anywhere">{t("composer.upload_failed", { names: intl.formatList(failed) })}</p>
      )}
    </div>
  );
}

/** Returns the states of the files that are known; those of files that were just added are loading. */
function useStates(files: readonly string[]): ReadonlyMap<string, Schemas["FileState"]> {
  const { data } = useQuery({
    ...statesQuery(files.slice(0, maxFileStates)),
    enabled: files.length > 0,
    placeholderData: (before) => before,
  });
  // A name is still displayed when its file was deleted.
  useEffect(
    () => noteNames(data?.data.map((one) => ({ id: one.file_id, name: one.file?.filename ?? "" })) ?? []),
    [data],
  );
  return useMemo(() => new Map(data?.data.map((one) => [one.file_id, one])), [data]);
}

interface FileProps {
  name: string;
  /** Undefined while it is loading. */
  file: StoredFile | null | undefined;
  /** Whether it was deleted, so that no message can have it. */
  gone: boolean;
  /** Whether the name is that of the file. */
  named: boolean;
  onView: () => void;
  /** Writes the text of the file into the field; undefined: it is not a pasted text. */
  onText: (() => void) | undefined;
  onRemove: () => void;
}

function AttachedFile({ name, file, gone, named, onView, onText, onRemove }: FileProps) {
  const t = useMessages(writingMessages);
  return (
    <li
      className={`flex max-w-full items-center rounded-md border bg-sunken ps-1 text-sm ${gone ? "border-danger" : "border-line"}`}
    >
      {gone ? (
        <span className="flex min-h-8 min-w-0 items-center gap-1.5 px-1 text-danger pointer-coarse:min-h-11">
          <FilePicture file={null} size={32} />
          <bdi className="truncate line-through">{name}</bdi>
          {named && <span className="shrink-0">{t("composer.file.gone")}</span>}
        </span>
      ) : (
        <button
          type="button"
          className="flex min-h-8 min-w-0 items-center gap-1.5 rounded-sm px-1 hover:underline pointer-coarse:min-h-11"
          onClick={onView}
        >
          <FilePicture file={file} size={32} />
          <bdi className="truncate">{name}</bdi>
        </button>
      )}
      {onText !== undefined && !gone && (
        <IconButton size="small" icon="undo" label={t("writing.pasted.to_text")} target={name} onClick={onText} />
      )}
      <IconButton size="small" icon="close" label={t("composer.remove_file")} target={name} onClick={onRemove} />
    </li>
  );
}

interface PicturesNoteProps {
  conversation: string;
  files: readonly string[];
  /** Whether the text of one of the files was read. */
  areRead: boolean;
  /** Those of the files that are pictures. */
  pictures: readonly string[];
}

/** Says whether the model will see the pictures of the message, and what it will not get of the texts of the files. */
function PicturesNote({ conversation, files, areRead, pictures }: PicturesNoteProps) {
  const t = useMessages(writingMessages);
  const { data } = useQuery({ ...preparedQuery(conversation, files), enabled: areRead });
  if (data === undefined) return null;
  const unseen = data.data.filter(({ file_id, shown }) => pictures.includes(file_id) && shown === "nothing").length;
  return (
    <div className="flex flex-col gap-1 text-xs text-soft empty:hidden">
      {pictures.length > 0 && (
        <p>
          {unseen === 0
            ? t("composer.pictures.seen", { count: pictures.length })
            : t("composer.pictures.unseen", { count: unseen })}
        </p>
      )}
      <AttachedNotes files={data.data} />
    </div>
  );
}
