// A draft that was changed on two devices: both are shown, and the user chooses.
import { decideDraft } from "../composer/drafts";
import type { DraftState } from "../composer/draft";
import { wishFocus } from "../composer/wishes";
import { Button } from "../controls/button";
import { useSpeech } from "../words/speech";

export function DraftClash({ id, draft }: { id: string; draft: DraftState }) {
  const { say } = useSpeech();
  if (draft.theirs === null) return null;
  const decide = (whose: "mine" | "theirs") => {
    decideDraft(id, whose);
    wishFocus(); // the button that was pressed goes
  };
  return (
    <section aria-labelledby={`${id}-clash`} className="mb-2 flex flex-col gap-3 rounded-md bg-amber-wash p-4 text-sm">
      <div role="alert">
        <h2 id={`${id}-clash`} className="font-medium text-amber">
          {say("composer.draft.clash")}
        </h2>
        <p className="text-soft">{say("composer.draft.clash.why")}</p>
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        <Version name={say("composer.draft.theirs")} text={draft.theirs.content} choice={say("composer.draft.take_theirs")} onChoose={() => decide("theirs")} />
        <Version name={say("composer.draft.mine")} text={draft.text} choice={say("composer.draft.keep_mine")} onChoose={() => decide("mine")} />
      </div>
    </section>
  );
}

function Version({ name, text, choice, onChoose }: { name: string; text: string; choice: string; onChoose: () => void }) {
  const { say } = useSpeech();
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <p className="text-xs text-soft">{name}</p>
      <p dir="auto" tabIndex={0} className="max-h-32 grow overflow-y-auto wrap-anywhere whitespace-pre-wrap">
        {text === "" ? say("composer.draft.empty") : text}
      </p>
      <Button onClick={onChoose} className="self-start">
        {choice}
      </Button>
    </div>
  );
}
