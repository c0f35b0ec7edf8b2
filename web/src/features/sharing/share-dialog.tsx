// The dialog that shares a conversation: what a share would show, when it expires, and the shares that exist.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Refusal, type Conversation, type Schemas } from "../../api/client";
import { noticeSignOut } from "../../api/session-state";
import { maxSharedArtifacts, maxSharedFiles } from "../../generated/limits";
import { createShare, shareDays, sharePreviewQuery, type CreatedShare, type ShareDays } from "./shares";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { Segmented } from "../../controls/form-controls";
import { Icon } from "../../controls/icon";
import { byteSize } from "../../messages/byte-size";
import { useLocalization, useMessages } from "../../messages/localization";
import { sharingMessages, type SharingMessageKey } from "../../messages/sharing";
import { Disclosure } from "../../parts/disclosure";
import { copyText } from "../../parts/export-text";
import { Choices } from "./choices";
import { ShareList } from "./share-list";
import { useSharing } from "./sharing";

const close = (): void => useSharing.setState({ conversation: null, message: undefined });

export function ShareDialog() {
  const conversation = useSharing((sharing) => sharing.conversation);
  return conversation && <OpenDialog key={conversation.conversation_id} conversation={conversation} />;
}

/** The message that explains why the service does not share a conversation. */
function reasonOf(refusal: unknown, conversation: Conversation): SharingMessageKey {
  if (!(refusal instanceof Refusal)) return "share.failed";
  if (refusal.outcomeUnknown || refusal.code === "idempotency_in_progress") return "share.outcome_unknown";
  switch (refusal.code) {
    case "turn_in_progress":
      return "pages.share.answering";
    case "too_many_shares":
      return "share.too_many";
    case "conflict":
      return conversation.temporary ? "share.temporary" : "share.empty";
  }
  if (refusal.status === 404) return "share.gone";
  if (refusal.status !== 422) return "share.failed";
  const ofArtifacts = refusal.problem?.errors?.some(({ field }) => field === "body.artifact_ids");
  return ofArtifacts === true ? "share.artifacts_too_large" : "share.too_long";
}

function OpenDialog({ conversation }: { conversation: Conversation }) {
  const t = useMessages(sharingMessages);
  const id = conversation.conversation_id;
  const last = useSharing(({ message }) => message);
  const preview = useInfiniteQuery(sharePreviewQuery(id, last));
  const [days, setDays] = useState<ShareDays>(30);
  const [files, setFiles] = useState<readonly string[]>([]);
  const [artifacts, setArtifacts] = useState<readonly string[]>([]);
  const [busy, setBusy] = useState(false);
  const [created, setCreated] = useState<CreatedShare | null>(null);
  const [copied, setCopied] = useState<boolean | null>(null);
  const [refusal, setRefusal] = useState<unknown>(null);
  const first = preview.data?.pages[0];
  const create = async () => {
    if (busy || first === undefined) return;
    setBusy(true);
    setRefusal(null);
    setCopied(null);
    try {
      setCreated(await createShare(id, { message: first.message_id, files, artifacts, days }));
    } catch (refused) {
      noticeSignOut(refused);
      setRefusal(refused);
    } finally {
      setBusy(false);
    }
  };
  const unavailable = preview.isError && first === undefined;
  const final = preview.error instanceof Refusal && !preview.error.outcomeUnknown;
  return (
    <Dialog title={t("share.title")} description={t("share.hint")} onClose={close}>
      {first !== undefined && <Preview preview={preview} title={first.title} count={first.message_count} />}
      {unavailable && (
        <Explanation reason={final ? reasonOf(preview.error, conversation) : "share.no_preview"}>
          {!final && (
            <Button icon="retry" onClick={() => void preview.refetch()}>
              {t("pages.retry")}
            </Button>
          )}
        </Explanation>
      )}
      {first === undefined && !unavailable && (
        <p role="status" className="text-sm text-soft">
          {t("pages.list.loading")}
        </p>
      )}
      {first !== undefined &&
        (created === null ? (
          <form
            className="-mt-3 flex flex-col gap-1"
            onSubmit={(event) => {
              event.preventDefault();
              void create();
            }}
          >
            {first.files.length > 0 && <Files preview={first} chosen={files} onChange={setFiles} />}
            {first.artifacts.length > 0 && <Artifacts preview={first} chosen={artifacts} onChange={setArtifacts} />}
            <Segmented
              label={t("share.expiry")}
              value={`${days}`}
              onChange={(chosen) => setDays(Number(chosen) as ShareDays)}
              options={shareDays.map((count) => ({ value: `${count}`, label: t("share.days", { count }) }))}
            />
            {refusal !== null && <Explanation reason={reasonOf(refusal, conversation)} />}
            <div className="flex justify-end gap-2">
              <Button onClick={close}>{t("pages.cancel")}</Button>
              <Button type="submit" look="primary" icon="link" aria-disabled={busy}>
                {t(busy ? "share.creating" : "share.create")}
              </Button>
            </div>
          </form>
        ) : (
          <CreatedLink share={created} copied={copied === true} onCopied={setCopied} />
        ))}
      {/* Outside of the parts that change, because screen readers announce only changes of a region that exists. */}
      <p role="status" className={created === null ? "sr-only" : "-mt-2 text-sm text-soft"}>
        {created !== null &&
          t(copied === null ? "share.created" : copied ? "pages.palette.link_copied" : "pages.keys.code_refused")}
      </p>
      <section aria-labelledby="shares-of-conversation">
        <h3 id="shares-of-conversation" className="text-sm font-semibold">
          {t("pages.shares.title")}
        </h3>
        <ShareList
          conversation={id}
          onRevoked={(share) => setCreated((now) => (now?.share_id === share.share_id ? null : now))}
        />
      </section>
    </Dialog>
  );
}

function Explanation({ reason, children }: { reason: SharingMessageKey; children?: React.ReactNode }) {
  const t = useMessages(sharingMessages);
  return (
    <div role="alert" className="flex flex-wrap items-center gap-3 rounded-md bg-warning-wash px-3 py-2 text-sm">
      <p className="flex min-w-48 grow items-start gap-2">
        <span className="pt-0.5 text-warning">
          <Icon name="warning" size={16} />
        </span>
        {t(reason)}
      </p>
      {children}
    </div>
  );
}

interface ChosenProps {
  preview: Schemas["SharePreview"];
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}

/** The files of the messages. The service lists the first ones. */
function Files({ preview: { files, file_count: count }, chosen, onChange }: ChosenProps) {
  const t = useMessages(sharingMessages);
  const { intl } = useLocalization();
  const hints = [t("share.files_hint", { count: maxSharedFiles })];
  if (count > files.length) hints.push(t("share.files_first", { shown: files.length, count }));
  return (
    <Choices
      legend={t("share.files")}
      hint={hints.join(" ")}
      choices={files.map(({ file_id, filename, size }) => ({
        id: file_id,
        label: filename,
        hint: byteSize(intl, size),
      }))}
      most={maxSharedFiles}
      {...{ chosen, onChange }}
    />
  );
}

/** The artifacts of the conversation. The service lists the newest ones. */
function Artifacts({ preview: { artifacts, artifact_count: count }, chosen, onChange }: ChosenProps) {
  const t = useMessages(sharingMessages);
  const { intl } = useLocalization();
  const hints = [t("share.artifacts_hint", { count: maxSharedArtifacts })];
  if (count > artifacts.length) hints.push(t("share.artifacts_first", { shown: artifacts.length, count }));
  return (
    <Choices
      legend={t("share.artifacts")}
      hint={hints.join(" ")}
      choices={artifacts.map(({ artifact_id, kind, title, version, bytes }) => ({
        id: artifact_id,
        label: title,
        hint: [t("artifacts.card", { kind: t(`artifacts.kind.${kind}`), version }), byteSize(intl, bytes)].join(" · "),
      }))}
      most={maxSharedArtifacts}
      {...{ chosen, onChange }}
    />
  );
}

interface PreviewProps {
  preview: {
    data: { pages: readonly Schemas["SharePreview"][] } | undefined;
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    fetchNextPage: () => unknown;
  };
  title: string;
  count: number;
}

function Preview({ preview, title, count }: PreviewProps) {
  const t = useMessages(sharingMessages);
  const messages = preview.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <div className="rounded-md border border-line bg-sunken px-4 pt-3 pb-1 text-sm">
      <p dir="auto" className="font-medium wrap-anywhere text-as-parent">
        {title || t("pages.untitled")}
      </p>
      <p>{t("pages.share.count", { count })}</p>
      <p className="mt-1 text-soft">{t("share.left_out")}</p>
      <Disclosure icon={<Icon name="eye" size={16} />} label={t("share.messages")}>
        {/* The focus makes the region scrollable by keyboard. */}
        <div
          role="region"
          aria-label={t("share.messages")}
          tabIndex={0}
          className="flex max-h-48 flex-col gap-3 overflow-y-auto pe-2"
        >
          {messages.map((message, index) => (
            <div key={index}>
              <p className="text-xs font-medium text-soft">{t(`pages.share.role.${message.role}`)}</p>
              {message.parts.map((part, at) => (
                <p
                  key={at}
                  dir="auto"
                  className={`line-clamp-6 whitespace-pre-wrap wrap-anywhere text-as-parent ${part.type === "code" ? "font-mono text-xs" : ""}`}
                >
                  {part.type === "code" ? part.code : part.text}
                </p>
              ))}
              {message.attachments.length > 0 && (
                <p className="text-xs text-soft">{t("share.attached", { count: message.attachments.length })}</p>
              )}
            </div>
          ))}
          {preview.hasNextPage && (
            <Button
              className="w-fit shrink-0 aria-disabled:text-faint"
              aria-disabled={preview.isFetchingNextPage}
              onClick={() => !preview.isFetchingNextPage && void preview.fetchNextPage()}
            >
              {t("pages.archive.more")}
            </Button>
          )}
        </div>
      </Disclosure>
    </div>
  );
}

interface CreatedLinkProps {
  share: CreatedShare;
  copied: boolean;
  /** Called with whether the browser allowed it. */
  onCopied: (done: boolean) => void;
}

/** The address of the new share, with a button that copies it and has the focus. */
function CreatedLink({ share, copied, onCopied }: CreatedLinkProps) {
  const t = useMessages(sharingMessages);
  return (
    <Field
      label={t("share.link")}
      readOnly
      dir="ltr"
      value={share.url}
      onFocus={(event) => event.target.select()}
      end={
        <Button
          autoFocus
          look="quiet"
          icon={copied ? "check" : "copy"}
          className="me-1 shrink-0 -outline-offset-2"
          onClick={() => void copyText(share.url).then(onCopied)}
        >
          {t("share.copy")}
        </Button>
      }
    />
  );
}
