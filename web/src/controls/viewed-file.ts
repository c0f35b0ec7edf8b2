// The file that is shown above the page, and the part of its text that a citation names.
import { create } from "zustand";

export interface ViewedFile {
  id: string;
  name: string;
  /** The cited part of the text, in bytes; absent: the text from its beginning. */
  cited?: { offset: number; length: number };
}

export const useFileView = create<{ file: ViewedFile | null }>(() => ({ file: null }));

export const viewFile = (file: ViewedFile): void => useFileView.setState({ file });
export const closeFileView = (): void => useFileView.setState({ file: null });
