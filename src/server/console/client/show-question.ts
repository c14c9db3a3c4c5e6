/// <reference lib="dom" />

/** Adds a question to the conversation on the page, and returns the parts that its answer changes. */
export function showQuestion(prompt: string) {
  const element = (tag: string, className: string, text: string): HTMLElement => {
    const made = document.createElement(tag);
    made.className = className;
    made.textContent = text;
    return made;
  };
  const item = document.createElement('li');
  const turn = element('article', 'turn', '');
  const lookup = element('p', 'note', 'Answering…');
  const answer = element('div', 'answer', '');
  const cancel = document.createElement('button');
  cancel.type = 'button';
  cancel.textContent = 'Cancel the answer';
  cancel.hidden = true;
  turn.append(element('p', 'asked', prompt), lookup, answer, cancel);
  item.append(turn);
  const place = document.querySelector('#conversation')!;
  let list = place.querySelector('.turns');
  if (list === null) {
    list = element('ol', 'turns', '');
    place.prepend(list);
  }
  list.append(item);
  item.scrollIntoView({ block: 'nearest' });
  return { item, lookup, answer, cancel };
}
