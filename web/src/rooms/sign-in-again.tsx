// Signing in again, in front of the room: what lies beneath stays as it is. Another account than before starts afresh.
import { useEffect, useState } from "react";
import { enter } from "../api/access";
import { api, askSession, body } from "../api/client";
import { Dialog } from "../controls/dialog";
import { Field, PasswordField } from "../controls/field";
import { useSpeech } from "../words/speech";
import { Providers } from "./providers";
import { EntryFoot, useEntry } from "./refused-form";

export function SignInAgain({ email: before }: { email: string }) {
  const { say } = useSpeech();
  const [email, setEmail] = useState(before);
  const [password, setPassword] = useState("");
  useSignedInElsewhere();
  const entry = useEntry(async () => enter(await body(api.POST("/auth/login", { body: { email: email.trim(), password } }))));
  return (
    <Dialog title={say("rooms.again.title")} description={say("rooms.again.why")}>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        <Field
          label={say("rooms.email")}
          name="email"
          type="email"
          autoComplete="username"
          spellCheck={false}
          autoCapitalize="none"
          dir="ltr"
          required
          value={email}
          onChange={(event) => setEmail(event.target.value)}
          hint={email.trim().toLowerCase() === before.toLowerCase() ? undefined : say("rooms.again.other")}
          problem={entry.problem("email")}
        />
        <PasswordField label={say("rooms.password")} name="password" autoComplete="current-password" autoFocus required value={password} onChange={(event) => setPassword(event.target.value)} problem={entry.problem("password")} />
        <EntryFoot entry={entry}>{say("rooms.sign_in.title")}</EntryFoot>
      </form>
      <Providers returnTo="/" beside />
    </Dialog>
  );
}

/** Who comes back from signing in with a provider, in another tab, goes on here too. */
function useSignedInElsewhere(): void {
  useEffect(() => {
    const look = () => {
      if (!document.hidden) void askSession().then(enter, () => {});
    };
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
}
