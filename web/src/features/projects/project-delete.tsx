// The dialog that deletes a project: the service returns what would be deleted, and the user types the name to confirm it.
import { useEffect, useState } from "react";
import { useNavigate } from "@tanstack/react-router";
import { Refusal } from "../../api/client";
import type { Confirmation } from "../../api/problem";
import { deleteProject, projectChanged, type Project } from "../../api/projects";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { Field } from "../../controls/field";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { projectMessages } from "../../messages/projects";

export function DeleteProjectDialog({ project, onClose }: { project: Project; onClose: () => void }) {
  const t = useMessages(projectMessages);
  const navigate = useNavigate();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const [name, setName] = useState("");
  const [failed, setFailed] = useState(false);
  const send = async (token?: string) => {
    try {
      await deleteProject(project, token);
      onClose();
      toast(t("pages.projects.delete_done", { name: project.name }));
      projectChanged();
      void navigate({ to: "/p/$project", params: { project: project.project_id } });
    } catch (refusal) {
      if (refusal instanceof Refusal && refusal.confirmation !== null) return setConfirmation(refusal.confirmation);
      noticeSignOut(refusal);
      setFailed(true);
      projectChanged();
    }
  };
  // The first request, without a token, deletes nothing.
  useEffect(() => void send(), []);
  const { conversations = 0, files = 0, prompts = 0, instructions = 0 } = confirmation?.will_delete ?? {};
  return (
    <Dialog
      title={t("pages.projects.delete_title", { name: project.name })}
      description={t("pages.projects.delete_hint", { count: conversations, files, prompts, instructions })}
      onClose={onClose}
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (confirmation !== null && name.trim() === project.name) void send(confirmation.token);
        }}
      >
        <Field
          autoFocus
          dir="auto"
          autoComplete="off"
          label={t("pages.projects.delete_confirm")}
          hint={project.name}
          value={name}
          onChange={(event) => setName(event.target.value)}
          problem={failed ? t("pages.projects.failed") : undefined}
        />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("pages.cancel")}</Button>
          <Button
            type="submit"
            look="danger"
            icon="trash"
            disabled={confirmation === null || name.trim() !== project.name}
          >
            {t("pages.delete.do")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
