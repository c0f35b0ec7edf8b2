// What is said about the text of a file: why it has none, or what of it was left out or guessed.
import type { Schemas } from "../../api/client";
import type { useMessages } from "../../messages/localization";
import type { ReadingMessageKey } from "../../messages/reading";

type Reason = NonNullable<Schemas["TextRange"]["reason"]>;

interface Read {
  reason: string | null;
  notes: readonly Schemas["TextNote"][];
  truncated?: boolean;
}

const reasons = [
  "encrypted",
  "damaged",
  "too_complex",
  "no_reader",
  "unreadable",
  "text_limit",
  "no_ocr",
  "no_text",
] as const satisfies Reason[];

const isReason = (reason: string | null): reason is Reason => reasons.some((one) => one === reason);

/** The sentences, in the language of the app. */
export function readingNotes(
  t: ReturnType<typeof useMessages<ReadingMessageKey>>,
  { reason, notes, truncated = false }: Read,
): string[] {
  return [
    ...(isReason(reason) ? [t(`file.reason.${reason}`)] : []),
    ...notes.map(({ kind, value = "", count = 0 }) => t(`file.note.${kind}`, { value, count })),
    ...(truncated ? [t("file.truncated")] : []),
  ];
}
