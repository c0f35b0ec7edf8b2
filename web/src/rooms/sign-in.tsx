// Signing in and registering: what a stranger sees, on one page.
import { useState } from "react";
import { enter } from "../api/access";
import { api, body } from "../api/client";
import { Button } from "../controls/button";
import { Field, PasswordField } from "../controls/field";
import { useSpeech } from "../words/speech";
import { nothingRefused, shortestPassword } from "./refused";
import { EntryFoot, useEntry, Wrong } from "./refused-form";
import { Threshold } from "./threshold";
import { Providers } from "./providers";
import { turnedAway } from "./turned-away";

const registrationOpen = document.querySelector<HTMLMetaElement>('meta[name="turnstone-registration"]')?.content !== "false";

export function SignIn() {
  const { say } = useSpeech();
  const [fresh, setFresh] = useState(false);
  const [email, setEmail] = useState("");
  return (
    <Threshold>
      <title>{`${say(fresh ? "rooms.register.title" : "rooms.sign_in.title")} · ${say("app.name")}`}</title>
      <h1 className="text-xl font-semibold">{say(fresh ? "rooms.register.title" : "rooms.sign_in.title")}</h1>
      <p className="mt-1 text-soft">{say("rooms.sign_in.promise")}</p>
      <div className="mt-8 flex flex-col gap-6">
        {turnedAway !== null && (
          <div role="alert">
            <Wrong>{say(turnedAway)}</Wrong>
          </div>
        )}
        {fresh ? <Register email={email} setEmail={setEmail} /> : <Login email={email} setEmail={setEmail} />}
        <Providers returnTo={location.pathname} />
        {registrationOpen && (
          <p className="text-center text-sm text-soft">
            {say(fresh ? "rooms.register.known" : "rooms.sign_in.fresh")}{" "}
            <Button look="quiet" className="text-tide underline underline-offset-4" onClick={() => setFresh(!fresh)}>
              {say(fresh ? "rooms.sign_in.title" : "rooms.register.title")}
            </Button>
          </p>
        )}
      </div>
    </Threshold>
  );
}

interface EmailProps {
  email: string;
  setEmail: (email: string) => void;
}

function EmailField({ email, setEmail, problem }: EmailProps & { problem: string | undefined }) {
  const { say } = useSpeech();
  return <Field label={say("rooms.email")} name="email" type="email" autoComplete="username" spellCheck={false} autoCapitalize="none" dir="ltr" required value={email} onChange={(event) => setEmail(event.target.value)} problem={problem} />;
}

function Login({ email, setEmail }: EmailProps) {
  const { say } = useSpeech();
  const [password, setPassword] = useState("");
  const entry = useEntry(async () => enter(await body(api.POST("/auth/login", { body: { email: email.trim(), password } }))));
  return (
    <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
      <EmailField email={email} setEmail={setEmail} problem={entry.problem("email")} />
      <PasswordField label={say("rooms.password")} name="password" autoComplete="current-password" required value={password} onChange={(event) => setPassword(event.target.value)} problem={entry.problem("password")} />
      <EntryFoot entry={entry}>{say("rooms.sign_in.title")}</EntryFoot>
    </form>
  );
}

function Register({ email, setEmail }: EmailProps) {
  const { say } = useSpeech();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const entry = useEntry(async () => {
    if ([...password].length < shortestPassword) return entry.refuse({ ...nothingRefused, fields: { password: "rooms.entry.password_short" } });
    enter(await body(api.POST("/auth/register", { body: { email: email.trim(), password, ...(name.trim() === "" ? {} : { display_name: name.trim() }) } })));
  }, true);
  return (
    <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
      <Field label={say("rooms.name")} name="name" autoComplete="name" maxLength={100} hint={say("rooms.name.hint")} value={name} onChange={(event) => setName(event.target.value)} problem={entry.problem("display_name")} />
      <EmailField email={email} setEmail={setEmail} problem={entry.problem("email")} />
      <PasswordField label={say("rooms.password")} name="password" autoComplete="new-password" required hint={say("rooms.password.hint")} value={password} onChange={(event) => setPassword(event.target.value)} problem={entry.problem("password")} />
      <EntryFoot entry={entry}>{say("rooms.register.title")}</EntryFoot>
    </form>
  );
}
