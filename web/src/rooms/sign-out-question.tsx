// Asks who signs out while messages were not sent yet.
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { useSpeech } from "../words/speech";
import { signOut, useUnsent } from "./sign-out";

export function SignOutQuestion() {
  const { say } = useSpeech();
  const { count } = useUnsent();
  if (count === 0) return null;
  const close = () => useUnsent.setState({ count: 0 });
  return (
    <Dialog title={say("rooms.sign_out.title")} description={say("rooms.sign_out.unsent", { count })} onClose={close}>
      <div className="flex justify-end gap-2">
        <Button onClick={close}>{say("rooms.cancel")}</Button>
        <Button
          look="danger"
          onClick={() => {
            close();
            void signOut(say);
          }}
        >
          {say("rooms.sign_out.anyway")}
        </Button>
      </div>
    </Dialog>
  );
}
