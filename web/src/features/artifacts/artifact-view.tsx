// One artifact: a version of it, what it changes, or the text that the user is typing; and what can be done with it.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { noticeSignOut } from "../../api/session-state";
import { Button, IconButton } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { Menu, MenuItem } from "../../controls/menu";
import { NotLoaded } from "../../controls/not-loaded";
import { QuietSelect } from "../../controls/select-list";
import { toast } from "../../controls/toast";
import { useLocalization, useMessages } from "../../messages/localization";
import { artifactMessages } from "../../messages/artifact-panel";
import { announce } from "../../parts/announcements";
import { CopyButton } from "../../parts/copy-button";
import { copyText } from "../../parts/export-text";
import { addToDraft } from "../composer";
import { ArtifactContent } from "./artifact-content";
import { ArtifactDiff } from "./artifact-diff";
import { ArtifactEditor } from "./artifact-editor";
import { beginEdit, useEdits } from "./edits";
import { failureMessage } from "./failure";
import { fixText } from "./fix-text";
import { startUnsaved } from "./unsaved";
import { contentQuery, downloadPath, restoreVersion, versionsQuery, type Artifact } from "./queries";

/** What is shown of an artifact. */
export interface Shown {
  /** null: the current version, also when there is a newer one. */
  selected: number | null;
  mode: "result" | "source" | "changes";
}

export const initiallyShown: Shown = { selected: null, mode: "result" };

interface ViewProps {
  artifact: Artifact;
  conversation: string;
  shown: Shown;
  onShow: (shown: Shown) => void;
  /** Called after a message was written into the composer. */
  onFix: () => void;
}

export function ArtifactView({ artifact, conversation, shown, onShow, onFix }: ViewProps) {
  const t = useMessages(artifactMessages);
  const { artifact_id: id, title, version: current } = artifact;
  const { selected, mode } = shown;
  const select = (wanted: number | null) => onShow({ ...shown, selected: wanted });
  const edit = useEdits(({ byID }) => byID[id]);
  const version = selected ?? current;
  const { data: content, isError, refetch } = useQuery(contentQuery(id, version));
  useEffect(() => void startUnsaved(), []);
  const editButton = useRef<HTMLButtonElement>(null);
  useAnnouncedVersion(title, current);
  const showCurrent = () => {
    select(null);
    requestAnimationFrame(() => editButton.current?.focus()); // the pressed button is removed
  };
  if (edit !== undefined) return <ArtifactEditor artifact={artifact} edit={edit} onEnd={showCurrent} />;
  const toggle = (wanted: typeof mode) => () => onShow({ ...shown, mode: mode === wanted ? "result" : wanted });
  const fix = (error: string) => {
    addToDraft(conversation, fixText({ title, version }, error, t));
    onFix();
  };
  return (
    <>
      <div className="flex shrink-0 flex-wrap items-center gap-x-1 border-b border-line px-2 pb-1.5">
        <VersionSelect
          artifact={artifact}
          label={t("artifacts.version")}
          value={version}
          onChange={(chosen) => select(chosen === current ? null : chosen)}
        />
        <span className="ms-auto flex items-center">
          {artifact.kind !== "code" && (
            <Toggle pressed={mode === "source"} onClick={toggle("source")}>
              {t("artifacts.source")}
            </Toggle>
          )}
          {current > 1 && (
            <Toggle pressed={mode === "changes"} onClick={toggle("changes")}>
              {t("artifacts.changes")}
            </Toggle>
          )}
          {content !== undefined && (
            <>
              {version === current ? (
                <IconButton
                  ref={editButton}
                  icon="edit"
                  label={t("artifacts.edit")}
                  onClick={() => beginEdit(id, current, content)}
                />
              ) : (
                <Restore artifact={artifact} version={version} onRestored={showCurrent} />
              )}
              {artifact.kind === "document" && mode === "result" && (
                <IconButton icon="print" label={t("artifacts.print")} onClick={() => window.print()} />
              )}
              <CopyButton size="normal" label={t("artifacts.copy")} copy={() => copyText(content)} />
              <Download artifact={artifact} version={version} />
            </>
          )}
        </span>
      </div>
      {mode === "changes" ? (
        <Changes key={version} artifact={artifact} version={version} />
      ) : content !== undefined ? (
        <ArtifactContent key={version} artifact={artifact} content={content} source={mode === "source"} onFix={fix} />
      ) : (
        <div className="p-4">
          {isError ? (
            <NotLoaded again={refetch}>{t("artifacts.not_loaded")}</NotLoaded>
          ) : (
            <p role="status" className="text-sm text-soft">
              {t("pages.list.loading")}
            </p>
          )}
        </div>
      )}
    </>
  );
}

const formats = ["", "html", "docx"] as const;

/** Downloads a version; a document in one of several formats. */
function Download({ artifact, version }: { artifact: Artifact; version: number }) {
  const t = useMessages(artifactMessages);
  const label = t("artifacts.download");
  if (artifact.kind !== "document") {
    return (
      <a
        href={downloadPath(artifact, version)}
        download=""
        aria-label={label}
        data-tooltip={label}
        className="inline-flex size-9 items-center justify-center rounded-md text-soft hover:bg-hover hover:text-ink pointer-coarse:size-11"
      >
        <Icon name="download" />
      </a>
    );
  }
  const start = (format: string) => () => {
    const link = document.createElement("a");
    link.href = downloadPath(artifact, version, format);
    link.download = ""; // the service names the file
    link.click();
  };
  return (
    <Menu align="end" trigger={<IconButton icon="download" label={label} />}>
      {formats.map((format) => (
        <MenuItem key={format} icon="fileText" onSelect={start(format)}>
          {t(`artifacts.download.${format === "" ? "markdown" : format}`)}
        </MenuItem>
      ))}
    </Menu>
  );
}

/** Announces a version that was written while the artifact is shown. */
function useAnnouncedVersion(title: string, version: number): void {
  const t = useMessages(artifactMessages);
  const known = useRef(version);
  useEffect(() => {
    if (version > known.current) announce(t("artifacts.updated", { title, version }));
    known.current = version;
  }, [title, version, t]);
}

function Toggle({ pressed, onClick, children }: { pressed: boolean; onClick: () => void; children: string }) {
  return (
    <Button look="quiet" aria-pressed={pressed} onClick={onClick} className={pressed ? "bg-hover text-ink" : ""}>
      {children}
    </Button>
  );
}

interface SelectProps {
  artifact: Artifact;
  label: string;
  value: number;
  onChange: (version: number) => void;
  /** A version that is not offered. */
  without?: number;
}

function VersionSelect({ artifact, label, value, onChange, without }: SelectProps) {
  const t = useMessages(artifactMessages);
  const { intl } = useLocalization();
  const { data: versions = [] } = useQuery(versionsQuery(artifact.artifact_id));
  // Until the list is loaded again, it may not have the newest version.
  const newest = { version: artifact.version, created_by: artifact.created_by, created_at: artifact.updated_at };
  const all = versions.some((one) => one.version === newest.version) ? versions : [newest, ...versions];
  return (
    <QuietSelect
      icon="clock"
      label={label}
      value={String(value)}
      onChange={(chosen) => onChange(Number(chosen))}
      options={all
        .filter(({ version }) => version !== without)
        .map(({ version, created_by, created_at }) => ({
          value: String(version),
          label: t(`artifacts.version.by_${created_by}`, {
            version,
            when: intl.formatDate(created_at, { dateStyle: "short", timeStyle: "short" }),
          }),
        }))}
    />
  );
}

/** What a version changes, compared with the one before it or with another one. */
function Changes({ artifact, version }: { artifact: Artifact; version: number }) {
  const t = useMessages(artifactMessages);
  const [chosen, choose] = useState(version > 1 ? version - 1 : artifact.version);
  return (
    <div className="flex min-h-0 grow flex-col overflow-y-auto p-4 short:shrink-0">
      <div className="flex flex-wrap items-center gap-2 text-sm text-soft">
        <span aria-hidden="true">{t("artifacts.compared")}</span>
        <VersionSelect
          artifact={artifact}
          label={t("artifacts.compared")}
          value={chosen}
          onChange={choose}
          without={version}
        />
      </div>
      <ArtifactDiff artifact={artifact.artifact_id} from={chosen} to={version} />
    </div>
  );
}

function Restore({ artifact, version, onRestored }: { artifact: Artifact; version: number; onRestored: () => void }) {
  const t = useMessages(artifactMessages);
  const [pending, setPending] = useState(false);
  const restore = async () => {
    setPending(true);
    try {
      const { version: now } = await restoreVersion(artifact, version);
      toast(t("artifacts.restored", { version: now }));
      onRestored();
    } catch (error) {
      noticeSignOut(error);
      toast(failureMessage(error, t), { kind: "problem" });
    } finally {
      setPending(false);
    }
  };
  return (
    <Button look="quiet" icon="undo" disabled={pending} onClick={() => void restore()}>
      {t("artifacts.restore")}
    </Button>
  );
}
