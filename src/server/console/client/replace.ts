/// <reference lib="dom" />

/** Puts a part of another page, as the server has made it, in place of the same part of this one. */
export async function replacePart(
  answer: Response,
  selector: string,
): Promise<HTMLElement | undefined> {
  const other = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const [before, after] = [document, other].map((one) =>
    one.querySelector<HTMLElement>(selector),
  ) as [HTMLElement | null, HTMLElement | null];
  if (before === null || after === null) return undefined;
  const part = document.adoptNode(after);
  before.replaceWith(part);
  return part;
}
