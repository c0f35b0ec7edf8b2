// Provides the language of the account: messages, plurals, dates and the text direction.
import { useQuery } from "@tanstack/react-query";
import { Direction } from "radix-ui";
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from "react";
import { createIntl, createIntlCache, type IntlShape } from "@formatjs/intl";
import type { MessageFormatElement } from "@formatjs/icu-messageformat-parser";
import { sessionQuery, settingsQuery } from "../api/queries";
import { useSettingsStore } from "../api/settings-store";
import { isolateValues, type Values } from "./bidi-isolation";
import { chooseLanguage, english, languages, type MessageKey, type Messages } from "./catalog";
import { insertTexts } from "./insert-texts";
import { storePreference } from "../api/preference";

export interface Localization {
  language: string;
  direction: "ltr" | "rtl";
  /** Formats a message of the app with its values, for example `t("composer.pending.items", { count: 3 })`. */
  t(id: MessageKey, values?: Values): string;
  /** Created when it is first read. */
  readonly intl: IntlShape;
  messages: Messages;
  /** Sets the preferred language and stores it in this browser. The language chosen by the account takes precedence. */
  setLanguage(language: string): void;
}

const cache = createIntlCache();

function createLocalization(
  language: string,
  messages: Messages,
  setLanguage: Localization["setLanguage"] = () => {},
): Localization {
  const { direction, intl, t } = createMessages(language, messages);
  return {
    language,
    messages,
    setLanguage,
    direction,
    t,
    get intl() {
      return intl();
    },
  };
}

function createMessages<Key extends string>(language: string, messages: Readonly<Record<Key, string>>) {
  let created: IntlShape | undefined;
  const intl = () =>
    (created ??= createIntl({ locale: language, messages, defaultLocale: "en", onError: () => {} }, cache));
  const direction = languages[language]?.direction ?? "ltr";
  return {
    direction,
    intl,
    t: (id: Key, values?: Values): string => {
      // The build parses the messages with values; the others are still strings.
      const message: string | readonly MessageFormatElement[] = messages[id];
      if (typeof message === "string") return message;
      const isolated = isolateValues(values, direction);
      return insertTexts(message, isolated) ?? intl().formatMessage({ id }, isolated);
    },
  };
}

const Current = createContext<Localization>(createLocalization("en", english));

export const useLocalization = () => use(Current);

type Catalogs<Key extends string> = Readonly<Record<string, Readonly<Record<Key, string>>>>;

/**
 * Returns the function that formats the messages of the app and those of a part that is loaded later, which brings them in every
 * language.
 */
export function useMessages<Key extends string>(catalogs: Catalogs<Key>) {
  const { language, messages } = useLocalization();
  return useMemo(
    () => createMessages<Key | MessageKey>(language, { ...messages, ...catalogs[language]! }).t,
    [language, messages, catalogs],
  );
}

/** Reads a preference stored by storePreference. */
function storedPreference(name: "language"): string | undefined {
  return document.cookie
    .split("; ")
    .find((cookie) => cookie.startsWith(`${name}=`))
    ?.slice(name.length + 1);
}

/** Renders nothing until the messages of the language are loaded, so that no text flashes in another language. */
export function Localization({ children }: { children: ReactNode }) {
  const session = useQuery({ ...sessionQuery, enabled: false });
  const settings = useQuery({ ...settingsQuery, enabled: session.data !== undefined });
  const [preferred, setPreferred] = useState(() => storedPreference("language"));
  // A refetch during a write may return the settings before it.
  const pending = useSettingsStore((store) => store.pending.language);
  // Default settings (version 0) do not contain a language that the account has chosen.
  const language = chooseLanguage(
    pending ?? (settings.data !== undefined && settings.data.version > 0 ? settings.data.language : preferred),
  );
  const [loaded, setLoaded] = useState<{ language: string; messages: Messages } | null>(
    language === "en" ? { language, messages: english } : null,
  );
  useEffect(() => {
    let current = true;
    languages[language]!.load().then(
      (messages) => current && setLoaded({ language, messages }),
      () => current && setLoaded((before) => before ?? { language: "en", messages: english }),
    );
    return () => void (current = false);
  }, [language]);
  const localization = useMemo(
    () =>
      loaded &&
      createLocalization(loaded.language, loaded.messages, (wanted) => {
        storePreference("language", wanted);
        setPreferred(wanted);
      }),
    [loaded],
  );
  useEffect(() => {
    if (localization === null) return;
    document.documentElement.lang = localization.language;
    document.documentElement.dir = localization.direction;
    if (settings.data !== undefined) storePreference("language", localization.language);
  }, [localization, settings.data]);
  if (localization === null) return null;
  return (
    <Direction.Provider dir={localization.direction}>
      <Current value={localization}>{children}</Current>
    </Direction.Provider>
  );
}
