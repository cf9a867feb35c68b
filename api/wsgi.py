"""The desk as gunicorn finds it."""

from api.app import create_app
from workers.app import make_app

celery = make_app("api")
app = create_app()
