// The uploads of this tab: the button that chooses files, the page as a target of dropped files, and a row for each
// upload.
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { retryOf, type Destination, type QueuedUpload, type UploadProblem } from "./upload-queue";
import { uploads, useUploads } from "./page-uploads";
import { Button, IconButton } from "../../controls/button";
import { formatSeconds, useSecondsUntil } from "../../controls/countdown";
import { Icon } from "../../controls/icon";
import { ProgressBar } from "../../controls/progress-bar";
import { useLocalization, useMessages } from "../../messages/localization";
import { byteSize } from "../../messages/byte-size";
import { fileMessages } from "../../messages/files";

interface UploadsProps {
  /** The project of which the uploads become files; null: the library. */
  project: string | null;
}

/** The button that chooses files. While it is displayed, files can be dropped anywhere on the page. */
export function UploadButton({ project, look }: UploadsProps & { look?: "primary" | "plain" }) {
  const t = useMessages(fileMessages);
  const chooser = useRef<HTMLInputElement>(null);
  const to = { project, conversation: null };
  return (
    <>
      <Button data-upload="" icon="upload" look={look ?? "primary"} onClick={() => chooser.current?.click()}>
        {t("library.upload")}
      </Button>
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          uploads.add(event.target.files ?? [], to);
          event.target.value = ""; // so that the same file can be chosen again
        }}
      />
      <DropTarget onFiles={(files) => uploads.add(files, to)} text={t("library.drop")} />
    </>
  );
}

/** Makes the page a target of dropped files. It shows a text while files are dragged over the page. */
export function DropTarget({ onFiles, text }: { onFiles: (files: FileList) => void; text: string }) {
  const dragging = useDroppedFiles(onFiles);
  return dragging ? (
    <div className="pointer-events-none fixed inset-0 z-40 flex items-center justify-center bg-overlay p-6">
      <p className="flex items-center gap-3 rounded-lg border-2 border-dashed border-accent bg-raised px-6 py-4 font-medium shadow-float">
        <Icon name="upload" />
        {text}
      </p>
    </div>
  ) : null;
}

/** Calls receive with files that are dropped on the page. Returns whether files are being dragged over it. */
function useDroppedFiles(receive: (files: FileList) => void): boolean {
  const [dragging, setDragging] = useState(false);
  const drop = useEffectEvent(receive);
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files") !== true) return;
      event.preventDefault(); // the page accepts the files
      event.dataTransfer.dropEffect = "copy";
      setDragging(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setDragging(false);
    const dropped = (event: DragEvent) => {
      setDragging(false);
      if (event.dataTransfer?.types.includes("Files") !== true) return;
      event.preventDefault();
      drop(event.dataTransfer.files);
    };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", dropped);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", dropped);
    };
  }, []);
  return dragging;
}

/** The uploads that have not become files: those with a destination, or all. */
export function UploadList({ of }: { of?: Partial<Destination> }) {
  const t = useMessages(fileMessages);
  const list = useUploads((state) => state.list);
  const shown = list.filter(
    ({ to }) => (of?.project ?? to.project) === to.project && (of?.conversation ?? to.conversation) === to.conversation,
  );
  useEffect(() => uploads.resume(), []);
  const ended = useUploads((state) => state.ended);
  const [before] = useState(ended);
  const announced =
    ended === before
      ? []
      : [
          ...(ended.uploaded > 0 ? [t("library.upload.uploaded", { count: ended.uploaded })] : []),
          ...(ended.stopped.length > 0
            ? [t("library.upload.stopped", { count: ended.stopped.length, name: ended.stopped[0]! })]
            : []),
        ];
  return (
    <>
      {shown.length > 0 && (
        <ul
          aria-label={t("library.uploads")}
          className="divide-y divide-line rounded-lg border border-line bg-raised px-4 text-sm"
        >
          {shown.map((one) => (
            <UploadRow key={one.id} upload={one} />
          ))}
        </ul>
      )}
      <div role="status" className="sr-only">
        {/* A new element for each round: a screen reader does not read the same text twice. */}
        <p key={ended.number}>{announced.join(" ")}</p>
      </div>
    </>
  );
}

/** The pressed button will be removed. */
const focusUploadButton = (): void => document.querySelector<HTMLElement>("[data-upload]")?.focus();

function UploadRow({ upload }: { upload: QueuedUpload }) {
  const { intl } = useLocalization();
  const t = useMessages(fileMessages);
  const { id, name, size, state, sent, problem } = upload;
  const stopped = state === "stopped";
  const texts = {
    waiting: t("library.upload.waiting"),
    sending: t("library.upload.sent", { sent: byteSize(intl, sent), size: byteSize(intl, size) }),
    checking: t("library.upload.checking"),
    ready: t("library.upload.waiting"),
    cancelling: t("library.upload.cancelling"),
  };
  return (
    <li className="flex flex-col gap-2 py-2.5">
      <div className="flex items-start gap-3">
        <div className="min-w-0 grow pt-1">
          <p className="font-medium wrap-anywhere">
            <bdi>{name}</bdi>
          </p>
          {!stopped && <p className="text-soft tabular-nums">{texts[state]}</p>}
          {problem !== null && <Problem upload={upload} problem={problem} />}
        </div>
        <IconButton
          icon="close"
          label={t(stopped ? "library.upload.remove" : "library.upload.cancel")}
          target={name}
          disabled={state === "cancelling"}
          onClick={() => {
            focusUploadButton();
            uploads.cancel(id);
          }}
        />
      </div>
      {(state === "sending" || state === "checking") && (
        <ProgressBar label={t("library.upload.progress", { name })} value={state === "sending" ? sent / size : null} />
      )}
    </li>
  );
}

function Problem({ upload, problem }: { upload: QueuedUpload; problem: UploadProblem }) {
  const { intl } = useLocalization();
  const t = useMessages(fileMessages);
  const left = useSecondsUntil(problem.retryAt);
  const retry = retryOf(upload);
  return (
    <>
      <p className="text-danger">{t(`library.problem.${problem.kind}`)}</p>
      {problem.detail !== "" && (
        <p className="text-soft">
          <bdi lang="en">{problem.detail}</bdi>
        </p>
      )}
      {retry !== null && (
        <Button
          icon="retry"
          className="my-1.5 tabular-nums aria-disabled:text-faint"
          aria-disabled={left > 0}
          onClick={() => {
            if (left > 0) return;
            focusUploadButton();
            uploads.retry(upload.id);
          }}
        >
          {left > 0
            ? t("library.upload.retry_in", { time: formatSeconds(left, intl) })
            : t(retry === "again" ? "library.upload.again" : "pages.retry")}
          <span className="sr-only">{upload.name}</span>
        </Button>
      )}
    </>
  );
}
