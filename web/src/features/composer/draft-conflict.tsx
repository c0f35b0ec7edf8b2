// The conflict of a draft that was changed on two devices: shows both versions and lets the user choose.
import { drafts } from "./page-drafts";
import { focusComposer } from "./composer-requests";
import { Button } from "../../controls/button";
import { useMessages } from "../../messages/localization";
import { writingMessages } from "../../messages/writing";

export function DraftConflict({ id, mine, theirs }: { id: string; mine: string; theirs: string }) {
  const t = useMessages(writingMessages);
  const decide = (whose: "mine" | "theirs") => {
    drafts.resolveConflict(id, whose);
    focusComposer(); // the pressed button is removed
  };
  return (
    <section
      aria-labelledby={`${id}-clash`}
      className="mb-2 flex flex-col gap-3 rounded-md bg-warning-wash p-4 text-sm"
    >
      <div role="alert">
        <h2 id={`${id}-clash`} className="font-medium text-warning">
          {t("composer.draft.conflict")}
        </h2>
        <p className="text-soft">{t("composer.draft.conflict.hint")}</p>
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        <Version
          name={t("composer.draft.theirs")}
          text={theirs}
          choice={t("composer.draft.take_theirs")}
          onChoose={() => decide("theirs")}
        />
        <Version
          name={t("composer.draft.mine")}
          text={mine}
          choice={t("composer.draft.keep_mine")}
          onChoose={() => decide("mine")}
        />
      </div>
    </section>
  );
}

function Version({
  name,
  text,
  choice,
  onChoose,
}: {
  name: string;
  text: string;
  choice: string;
  onChoose: () => void;
}) {
  const t = useMessages(writingMessages);
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <p className="text-xs text-soft">{name}</p>
      <p dir="auto" tabIndex={0} className="max-h-32 grow overflow-y-auto wrap-anywhere whitespace-pre-wrap">
        {text === "" ? t("composer.draft.empty") : text}
      </p>
      <Button onClick={onChoose} className="self-start">
        {choice}
      </Button>
    </div>
  );
}
