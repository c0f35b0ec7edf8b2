// Changing the password. Every other device is signed out by it.
import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { api, body, forgetToken } from "../api/client";
import { changed, queryClient, sessionQuery } from "../api/queries";
import { Field, PasswordField } from "../controls/field";
import { toast } from "../controls/toast";
import { useSpeech } from "../words/speech";
import { Prove, useProof } from "./prove";
import { providers } from "./providers";
import { nothingRefused, shortestPassword } from "./refused";
import { EntryFoot, useEntry } from "./refused-form";

export function ChangePassword() {
  const { say } = useSpeech();
  const { data: session } = useQuery({ ...sessionQuery, enabled: false });
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const proof = useProof();
  const entry = useEntry(async () => {
    if ([...next].length < shortestPassword) return entry.refuse({ ...nothingRefused, fields: { new_password: "rooms.entry.password_short" } });
    await proof.withProof(async () => {
      const answer = await body(api.POST("/auth/password", { body: { new_password: next, ...(current === "" ? {} : { current_password: current }) } }));
      forgetToken();
      queryClient.setQueryData(sessionQuery.queryKey, answer);
      setCurrent("");
      setNext("");
      void changed("devices");
      toast(say("rooms.password.changed"));
    });
  });
  return (
    <>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex max-w-88 flex-col gap-4">
        {/* Managers of passwords want to know whose it is. */}
        <Field hidden className="hidden" label={say("rooms.email")} type="email" autoComplete="username" readOnly value={session?.account.email ?? ""} />
        <PasswordField label={say("rooms.password.current")} hint={providers.length > 0 ? say("rooms.password.none") : undefined} autoComplete="current-password" required={providers.length === 0} value={current} onChange={(event) => setCurrent(event.target.value)} problem={entry.problem("current_password")} />
        <PasswordField label={say("rooms.password.new")} hint={say("rooms.password.hint")} autoComplete="new-password" required value={next} onChange={(event) => setNext(event.target.value)} problem={entry.problem("new_password") ?? entry.problem("email")} />
        <EntryFoot entry={entry}>{say("rooms.password.change")}</EntryFoot>
      </form>
      <Prove proof={proof} />
    </>
  );
}
