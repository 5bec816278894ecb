/* state.js: what the reader has chosen, and who wants to know. There are two choices: a span of time, which
 * every picture over time shows and every table is summed over, and a place in the program. Changes are
 * gathered: those who watch are called once, in the next frame. */

export const chosen = {
  span: null,  /* {from, to} in ns since the run began; null: the whole run */
  place: null, /* {title, frames: Set of frame numbers}; null: all places */
};

const watchers = [];
let pending = null;

export function watchChoice(watcher) {
  watchers.push(watcher);
}

/* change({span: {from, to}}), change({place: null}). Also without a choice: draws all again. */
export function change(what = {}) {
  Object.assign(chosen, what);
  pending ??= new Promise((resolve) => {
    requestAnimationFrame(() => {
      pending = null;
      for (const watcher of watchers) watcher();
      resolve();
    });
  });
  return pending;
}

/* Resolves when what was changed is drawn. */
export async function settled() {
  while (pending) await pending;
}
