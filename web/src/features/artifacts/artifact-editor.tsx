// The text of an artifact that the user is typing. It is saved as a version based on the one that the user has seen; if there is
// a newer one, both texts are kept until the user decides.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Icon } from "../../controls/icon";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { artifactMessages } from "../../messages/artifact-panel";
import { announce } from "../../parts/announcements";
import { ArtifactDiff } from "./artifact-diff";
import { endEdit, replacedVersion, restoreEdit, settleEdit, storeEdits, typeText, type Edit } from "./edits";
import { failureMessage } from "./failure";
import { cachedContent, diffQuery, saveContent, type Artifact } from "./queries";

interface EditorProps {
  artifact: Artifact;
  edit: Edit;
  /** Called when the text was saved or discarded while the editor is shown. */
  onEnd: () => void;
}

export function ArtifactEditor({ artifact, edit, onEnd }: EditorProps) {
  const t = useMessages(artifactMessages);
  const { artifact_id: id, title, version } = artifact;
  const field = useRef<HTMLTextAreaElement>(null);
  const [saving, setSaving] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const newer = version > edit.base;
  const { data: diff, isError } = useQuery({
    ...diffQuery(id, edit.base, version),
    enabled: newer,
    placeholderData: keepPreviousData,
  });
  const replaced = replacedVersion(edit.base, version, diff, isError);
  const compared = replaced ?? version;
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    addEventListener("pagehide", storeEdits);
    document.addEventListener("visibilitychange", storeEdits);
    return () => {
      removeEventListener("pagehide", storeEdits);
      document.removeEventListener("visibilitychange", storeEdits);
      storeEdits();
    };
  }, []);
  const shown = useRef(false);
  useEffect(() => {
    shown.current = true;
    return () => void (shown.current = false);
  }, []);
  const save = async (base: number) => {
    setSaving(true);
    setFailure(null);
    try {
      const saved = await saveContent(artifact, base, edit.text);
      announce(t("artifacts.saved", { version: saved.version }));
      const isShown = shown.current; // the panel may show something else by now
      if (settleEdit(id, edit, saved.version) && isShown) onEnd();
    } catch (error) {
      noticeSignOut(error);
      setFailure(failureMessage(error, t));
    }
    setSaving(false);
  };
  const discard = () => {
    endEdit(id);
    onEnd();
    if (edit.text === cachedContent(id, edit.base)) return;
    toast(t("artifacts.discarded"), {
      action: { label: t("artifacts.undo"), run: () => restoreEdit(id, edit) },
    });
  };
  return (
    <div className="flex min-h-0 grow flex-col gap-2 px-4 pb-3 short:shrink-0">
      {newer && (
        <section
          aria-label={t("artifacts.newer", { version: compared })}
          className="flex max-h-1/2 short:max-h-none shrink-0 flex-col overflow-y-auto rounded-md border border-line p-3 text-sm"
        >
          <p role="status" className="flex items-center gap-2 text-warning">
            <Icon name="warning" size={16} />
            {t("artifacts.newer", { version: compared })}
          </p>
          <ArtifactDiff artifact={id} from={edit.base} to={compared} />
        </section>
      )}
      <textarea
        ref={field}
        aria-label={t("artifacts.edit.of", { title })}
        value={edit.text}
        dir="auto"
        spellCheck={artifact.kind === "document"}
        onChange={(event) => typeText(id, event.target.value)}
        className="min-h-24 grow resize-none rounded-md border border-edge bg-raised p-3 font-mono text-sm pointer-coarse:text-base"
      />
      {failure !== null && (
        <p role="alert" className="text-sm text-danger">
          {failure}
        </p>
      )}
      <div className="flex flex-wrap gap-2">
        <Button look="primary" disabled={saving || replaced === null} onClick={() => void save(compared)}>
          {t(newer ? "artifacts.save.over" : "artifacts.save")}
        </Button>
        <Button disabled={saving} onClick={discard}>
          {t(newer ? "artifacts.discard.newer" : "artifacts.discard")}
        </Button>
      </div>
    </div>
  );
}
