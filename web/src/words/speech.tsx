// Speaks the account's language: words, plurals, dates and the direction of writing.
import { useQuery } from "@tanstack/react-query";
import { Direction } from "radix-ui";
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from "react";
import { createIntl, createIntlCache, type IntlShape } from "@formatjs/intl";
import { sessionQuery, settingsQuery } from "../api/queries";
import { isolated, type Values } from "./isolated";
import { choose, english, languages, type Word, type Words } from "./words";

export interface Speech {
  language: string;
  direction: "ltr" | "rtl";
  /** A word of the app, with its values: `say("messages.count", { count: 3 })`. */
  say(word: Word, values?: Values): string;
  intl: IntlShape;
  /** Speaks another language from now on, and remembers it in this browser. What the account has chosen goes before. */
  prefer(language: string): void;
}

const cache = createIntlCache();

function speechOf(language: string, words: Words, prefer: Speech["prefer"] = () => {}): Speech {
  const intl = createIntl({ locale: language, messages: words, defaultLocale: "en", onError: () => {} }, cache);
  const direction = languages[language]?.direction ?? "ltr";
  return { language, direction, intl, prefer, say: (word, values) => intl.formatMessage({ id: word, defaultMessage: english[word] }, isolated(values, direction)) };
}

const Current = createContext<Speech>(speechOf("en", english));

export const useSpeech = () => use(Current);

/** The cookie tells the server how to write the document, so that the next load is right from its first frame. */
export function remember(name: "language" | "theme", value: string): void {
  document.cookie = `${name}=${value}; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
}

/** What remember keeps. */
function remembered(name: "language"): string | undefined {
  return document.cookie.split("; ").find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** Draws nothing until the words of the first language are there, so that no other language flashes. */
export function Speech({ children }: { children: ReactNode }) {
  const session = useQuery({ ...sessionQuery, enabled: false });
  const settings = useQuery({ ...settingsQuery, enabled: session.data !== undefined });
  const [preferred, setPreferred] = useState(() => remembered("language"));
  // Settings that nobody has written yet (version 0) say nothing of what this reader speaks.
  const language = choose(settings.data !== undefined && settings.data.version > 0 ? settings.data.language : preferred);
  const [spoken, setSpoken] = useState<{ language: string; words: Words } | null>(language === "en" ? { language, words: english } : null);
  useEffect(() => {
    let current = true;
    languages[language]!.load().then(
      (words) => current && setSpoken({ language, words }),
      () => current && setSpoken((before) => before ?? { language: "en", words: english }),
    );
    return () => void (current = false);
  }, [language]);
  const speech = useMemo(
    () =>
      spoken &&
      speechOf(spoken.language, spoken.words, (wanted) => {
        remember("language", wanted);
        setPreferred(wanted);
      }),
    [spoken],
  );
  useEffect(() => {
    if (speech === null) return;
    document.documentElement.lang = speech.language;
    document.documentElement.dir = speech.direction;
    if (settings.data !== undefined) remember("language", speech.language);
  }, [speech, settings.data]);
  if (speech === null) return null;
  return (
    <Direction.Provider dir={speech.direction}>
      <Current value={speech}>{children}</Current>
    </Direction.Provider>
  );
}
