"""What is served: a run, a model, or a run that will have a model. The model is loaded when it is there."""

from __future__ import annotations

import logging
import time
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from autosf import __version__
from autosf.app.web.explorer import Explorer, explorer_of, model_as_json
from autosf.app.web.refusals import Refused
from autosf.app.web.watching import Watch, stamp_of_file, status_of
from autosf.embedding.model_folder import is_model_folder
from autosf.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from autosf.app.web.watching import Sight

LOOK_SECONDS = 1.0
log = logging.getLogger("autosf.serve")


class Site:
    """Owns the sight of a run and the loaded model; one that appears or changes is loaded beside it."""

    def __init__(self, name: str, model: Path, watch: Watch | None = None, graph: object = None) -> None:
        self.name, self.watch = name, watch
        self._model, self._graph = model, graph
        self._lock = Lock()
        self._looked = -LOOK_SECONDS
        self._stamp: tuple[int, int] | None = None  # of the model that is loaded, or being loaded
        self._explorer: Explorer | None = None
        self._state = "none"

    def load(self) -> None:
        """Load the model now."""
        self._stamp = stamp_of_file(self._model / "model.json")
        self._take(self._loaded())

    def sight(self) -> Sight:
        """The run as it is."""
        if self.watch is None:
            raise Refused(
                409, "a model is served here, not a search; serve the folder of its run to see that"
            )
        try:
            return self.watch.sight()
        except UserError as error:
            log.warning("%s", error)
            raise Refused(409, "the run cannot be read at the moment") from None

    def explorer(self) -> Explorer:
        """The model, ready to be asked."""
        self.look()
        if self._explorer is None:
            raise Refused(409, "there is no model yet: it comes when the search has ended")
        return self._explorer

    def status(self) -> dict[str, Any]:
        """Everything that tells a page what to show."""
        self.look()
        explorer = self._explorer
        return {
            "name": self.name,
            "autosf": __version__,
            "search": status_of(self.sight(), self.watch.run) if self.watch else None,
            "model": model_as_json(explorer) if explorer else None,
            "model_state": self._state,
        }

    def look(self) -> None:
        """Now and then look for another model, and load it beside what is served."""
        with self._lock:
            now = time.monotonic()
            if self.watch is None or now - self._looked < LOOK_SECONDS or self._state == "loading":
                return
            self._looked = now
            stamp = stamp_of_file(self._model / "model.json")
            if stamp is None or stamp == self._stamp or not is_model_folder(self._model):
                return
            self._stamp, self._state = stamp, "loading"
        Thread(target=self._load_in_background, daemon=True).start()

    def _load_in_background(self) -> None:
        try:
            self._take(self._loaded())
        except UserError as error:
            log.warning("%s", error)
            self._state = "failed"
        except Exception:
            self._state = "failed"
            raise

    def _take(self, explorer: Explorer) -> None:
        with self._lock:
            self._explorer, self._state = explorer, "ready"

    def _loaded(self) -> Explorer:
        from autosf.app.predicting import load

        return explorer_of(load(self._model, graph=self._graph))
