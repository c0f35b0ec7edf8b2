// Some things the service does only for who has signed in within the last minutes: asks for the password, then goes on.
import { useCallback, useState } from "react";
import { api, body, forgetToken, Refusal } from "../api/client";
import { queryClient, sessionQuery } from "../api/queries";
import { Button } from "../controls/button";
import { Dialog } from "../controls/dialog";
import { PasswordField } from "../controls/field";
import { useSpeech } from "../words/speech";
import { Providers } from "./providers";
import { EntryFoot, useEntry } from "./refused-form";

interface Waiting {
  run: () => Promise<void>;
  resolve: () => void;
  reject: (refusal: unknown) => void;
}

export interface Proof {
  /** Runs; when the service wants a recent sign-in, asks for it and runs again. Settles when it ran, or the user gave up. */
  withProof: (run: () => Promise<void>) => Promise<void>;
  waiting: Waiting | null;
  end: () => void;
}

export function useProof(): Proof {
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const withProof = useCallback(async (run: () => Promise<void>) => {
    try {
      await run();
    } catch (refusal) {
      if (!(refusal instanceof Refusal) || refusal.code !== "reauth_required") throw refusal;
      await new Promise<void>((resolve, reject) => setWaiting({ run, resolve, reject }));
    }
  }, []);
  const end = useCallback(() => setWaiting(null), []);
  return { withProof, waiting, end };
}

/** The question, while a proof is wanted. */
export function Prove({ proof }: { proof: Proof }) {
  return proof.waiting === null ? null : <Question waiting={proof.waiting} end={proof.end} />;
}

function Question({ waiting, end }: { waiting: Waiting; end: () => void }) {
  const { say } = useSpeech();
  const [password, setPassword] = useState("");
  const entry = useEntry(async () => {
    const session = await body(api.POST("/auth/reauthenticate", { body: { password } }));
    forgetToken(); // the session has another token now
    queryClient.setQueryData(sessionQuery.queryKey, session);
    end();
    waiting.run().then(waiting.resolve, waiting.reject);
  });
  const giveUp = () => {
    end();
    waiting.resolve();
  };
  return (
    <Dialog title={say("rooms.prove.title")} description={say("rooms.prove.why")} onClose={giveUp}>
      <form method="post" ref={entry.form} onSubmit={entry.submit} className="flex flex-col gap-4">
        <PasswordField label={say("rooms.password")} autoComplete="current-password" autoFocus required value={password} onChange={(event) => setPassword(event.target.value)} problem={entry.refused.fields.password && say("rooms.entry.current_wrong")} />
        <EntryFoot entry={entry} extra={<Button onClick={giveUp}>{say("rooms.cancel")}</Button>}>
          {say("rooms.prove.do")}
        </EntryFoot>
      </form>
      <Providers returnTo="/settings" />
    </Dialog>
  );
}
