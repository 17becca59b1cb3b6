"""The order of the examples in the gallery: from what the model does to what is proved about it."""

ORDER = (
    "correlated_groups",
    "path_with_clusters",
    "one_standard_error",
    "digits",
    "knockoffs",
    "stability",
    "sparse_text",
    "sample_weights",
    "unpenalized_covariates",
    "relaxed_fit",
    "shared_selection",
    "memory_map",
    "dask",
    "screening_rules",
    "any_solver",
    "network",
    "certificate",
    "paper_in_small",
)


class ReadingOrder:
    """Sort key of file names for sphinx-gallery; examples that are not listed come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file_name: str) -> tuple[int, str]:
        """Place of an example, and its name to tell those apart that have none."""
        name = file_name.removeprefix("plot_").removesuffix(".py")
        return ORDER.index(name) if name in ORDER else len(ORDER), name
