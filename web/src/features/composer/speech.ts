// Whether this browser and this service turn speech into text, and the states of a dictation.

const meta = document.querySelector<HTMLMetaElement>('meta[name="turnstone-transcription"]');

/** Whether the service turns recordings into text, and this browser makes some. */
export const transcribes = meta?.content === "true" && "MediaRecorder" in window && "mediaDevices" in navigator;

/** Whether speech can be turned into text. */
export const dictates = transcribes || "SpeechRecognition" in window || "webkitSpeechRecognition" in window;

/**
 * on: it listens. stopping: what was said until now is still turned into text. sent: the text of the field was sent, so what is
 * recognized late is not added.
 */
export type DictationState = "on" | "stopping" | "sent";
