// The dialogs that name a new project and rename one.
import { useState } from "react";
import { createProject, projectChanged, renameProject, type Project } from "../../api/projects";
import { noticeSignOut } from "../../api/session-state";
import { maxTitle } from "../../generated/limits";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { useLocalization, useMessages } from "../../messages/localization";
import { projectMessages } from "../../messages/projects";

interface NameDialogProps {
  title: string;
  action: string;
  name: string;
  onClose: () => void;
  onSave: (name: string) => Promise<void>;
}

function NameDialog({ title, action, name: before, onClose, onSave }: NameDialogProps) {
  const { t } = useLocalization();
  const [name, setName] = useState(before);
  const [state, setState] = useState<"" | "saving" | "failed">("");
  const save = async () => {
    setState("saving");
    try {
      await onSave(name.trim());
    } catch (refusal) {
      noticeSignOut(refusal);
      setState("failed");
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "" && state !== "saving") void save();
        }}
      >
        <Field
          autoFocus
          dir="auto"
          label={t("pages.projects.name")}
          maxLength={maxTitle}
          value={name}
          onChange={(event) => setName(event.target.value)}
          problem={state === "failed" ? t("pages.projects.failed") : undefined}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("pages.cancel")}</Button>
          <Button type="submit" look="primary" disabled={name.trim() === "" || state === "saving"}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

export function NewProjectDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (project: Project) => void;
}) {
  const t = useMessages(projectMessages);
  const create = async (name: string) => {
    const project = await createProject(name);
    projectChanged();
    onCreated(project);
  };
  return (
    <NameDialog
      title={t("pages.projects.new")}
      action={t("pages.projects.create")}
      name=""
      onClose={onClose}
      onSave={create}
    />
  );
}

export function RenameProjectDialog({ project, onClose }: { project: Project; onClose: () => void }) {
  const t = useMessages(projectMessages);
  const rename = async (name: string) => {
    await renameProject(project, name);
    projectChanged();
    onClose();
  };
  return (
    <NameDialog
      title={t("pages.projects.rename")}
      action={t("pages.projects.save")}
      name={project.name}
      onClose={onClose}
      onSave={rename}
    />
  );
}
