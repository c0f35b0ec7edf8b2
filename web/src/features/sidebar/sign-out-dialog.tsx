// The dialog that asks for confirmation before signing out with unsent messages.
import { Button } from "../../controls/button";
import { Dialog } from "../../controls/dialog";
import { useLocalization } from "../../messages/localization";
import { signOut, useUnsentCount } from "./sign-out";

export function SignOutDialog() {
  const { t } = useLocalization();
  const { count } = useUnsentCount();
  if (count === 0) return null;
  const close = () => useUnsentCount.setState({ count: 0 });
  return (
    <Dialog title={t("pages.sign_out.title")} description={t("pages.sign_out.unsent", { count })} onClose={close}>
      <div className="flex justify-end gap-2">
        <Button autoFocus onClick={close}>
          {t("pages.cancel")}
        </Button>
        <Button
          look="danger"
          onClick={() => {
            close();
            void signOut(t);
          }}
        >
          {t("pages.sign_out.anyway")}
        </Button>
      </div>
    </Dialog>
  );
}
