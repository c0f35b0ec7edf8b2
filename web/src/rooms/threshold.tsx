// The page of who is not in: at the door, or before a closed one.
import type { ReactNode } from "react";
import mark from "../mark.svg";
import { Select } from "../controls/choice";
import { useSpeech } from "../words/speech";
import { languages } from "../words/words";

/** The page around what is asked at the door: the name of the house above, its languages beneath. */
export function Threshold({ children }: { children: ReactNode }) {
  const { say, language, prefer } = useSpeech();
  return (
    <div className="flex h-dvh flex-col overflow-y-auto ps-[max(1.25rem,env(safe-area-inset-left))] pe-[max(1.25rem,env(safe-area-inset-right))]">
      <main className="m-auto w-full max-w-88 py-10">
        <p className="mb-8 flex items-center gap-2.5 font-semibold">
          <img src={mark} alt="" className="size-7" />
          {say("app.name")}
        </p>
        {children}
      </main>
      <footer className="flex justify-center pb-[max(1rem,env(safe-area-inset-bottom))]">
        <Select quiet label={say("rooms.language")} value={language} onChange={prefer} options={Object.entries(languages).map(([value, { name }]) => ({ value, label: name, lang: value }))} />
      </footer>
    </div>
  );
}
