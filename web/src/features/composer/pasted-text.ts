// Long pasted texts, which become files of the message: a field with a long text is slow, and hides the question.

const pastedName = "pasted-text.txt";

export const pastedFile = (text: string): File => new File([text], pastedName, { type: "text/plain" });

/** Whether a file is a pasted text, which can be written into the field again. */
export const isPasted = (name: string): boolean => name === pastedName;
