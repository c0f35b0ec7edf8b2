// Reads a message aloud with the voice of the browser, where it has one.
import { create } from "zustand";
import { languageDetector } from "../../parts/text-language";

export const readsAloud = "speechSynthesis" in window;

/** The message that is read; null: none. */
export const useReading = create<{ message: string | null }>(() => ({ message: null }));

export function stopReading(): void {
  useReading.setState({ message: null });
  speechSynthesis.cancel();
}

/**
 * Reads a text in place of the one that is read, each sentence with a voice of its language. It ends when another page is
 * opened. language: that of the app.
 */
export function readAloud(message: string, text: string, language: string): void {
  stopReading();
  const page = location.pathname;
  // Sentence by sentence: some voices stop in long texts.
  const sentences = text
    .split("\n")
    .flatMap((line) => [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(line)]);
  const languageOf = languageDetector(text, [...navigator.languages, language]);
  const spoken = sentences.flatMap(({ segment }) => {
    if (segment.trim() === "") return [];
    const one = new SpeechSynthesisUtterance(segment.trim());
    one.lang = languageOf(segment);
    return [one];
  });
  const end = () => useReading.getState().message === message && useReading.setState({ message: null });
  const last = spoken.at(-1);
  if (last === undefined) return;
  useReading.setState({ message });
  last.onend = end;
  for (const one of spoken) {
    one.onstart = () => location.pathname !== page && stopReading();
    one.onerror = end; // also of those that are cancelled
    speechSynthesis.speak(one);
  }
}
