// The dialog that asks for confirmation before signing out with unsent messages or unsaved texts.
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { useMessages } from "../../messages/localization";
import { closeSignOut, isUnsent, signOut, useUnsent } from "./sign-out";
import { organizingMessages } from "../../messages/organizing";

export function SignOutDialog() {
  const t = useMessages(organizingMessages);
  const unsent = useUnsent();
  if (!isUnsent(unsent)) return null;
  return (
    <Dialog
      title={t("pages.sign_out.title")}
      description={t("pages.sign_out.unsent", { ...unsent })}
      onClose={closeSignOut}
    >
      <div className="flex justify-end gap-2">
        <Button autoFocus onClick={closeSignOut}>
          {t("pages.cancel")}
        </Button>
        <Button
          look="danger"
          onClick={() => {
            closeSignOut();
            void signOut(t);
          }}
        >
          {t("pages.sign_out.anyway")}
        </Button>
      </div>
    </Dialog>
  );
}
