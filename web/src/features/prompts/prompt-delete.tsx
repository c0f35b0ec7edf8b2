// The dialog that deletes a prompt.
import { useRef, useState } from "react";
import { Refusal } from "../../api/client";
import { deletePrompt, promptsChanged, type Prompt } from "../../api/prompts";
import { noticeSignOut } from "../../api/session-state";
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { FormError } from "../../controls/form-error";
import { toast } from "../../controls/toast";
import { useMessages } from "../../messages/localization";
import { promptMessages } from "../../messages/prompts";

interface DeletePromptDialogProps {
  prompt: Prompt;
  onClose: () => void;
  /** Returns the element to focus when the button that opened the dialog is gone. */
  afterDeletion: () => HTMLElement | null;
}

export function DeletePromptDialog({ prompt, onClose, afterDeletion }: DeletePromptDialogProps) {
  const t = useMessages(promptMessages);
  const [state, setState] = useState<"" | "deleting" | "failed">("");
  const deleted = useRef(false);
  const remove = async () => {
    setState("deleting");
    try {
      await deletePrompt(prompt.prompt_id).catch((refusal: unknown) => {
        if (!(refusal instanceof Refusal && refusal.status === 404)) throw refusal; // already deleted
      });
      deleted.current = true;
      toast(t("prompts.deleted", { name: prompt.name }));
      onClose();
    } catch (refusal) {
      noticeSignOut(refusal);
      setState("failed");
    } finally {
      void promptsChanged();
    }
  };
  return (
    <Dialog
      title={t("prompts.delete_title", { name: prompt.name })}
      description={t("prompts.delete_hint")}
      onClose={onClose}
      returnTo={() => (deleted.current ? afterDeletion() : null)}
    >
      {state === "failed" && <FormError>{t("prompts.delete_failed")}</FormError>}
      <div className="flex justify-end gap-2">
        <Button onClick={onClose}>{t("pages.cancel")}</Button>
        <Button look="danger" icon="trash" disabled={state === "deleting"} onClick={() => void remove()}>
          {t("pages.delete.do")}
        </Button>
      </div>
    </Dialog>
  );
}
